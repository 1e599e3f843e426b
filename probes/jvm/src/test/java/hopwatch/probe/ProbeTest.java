package hopwatch.probe;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A probe does not hurt its host: it throws nothing, waits for nothing, and has bounds. */
class ProbeTest {
    private static final long NOW_US = 1_700_000_000_000_000L;

    private final ManualClock clock = new ManualClock(NOW_US);
    private final MemorySink sink = new MemorySink();

    private Probe start() {
        return Probe.startQuiet(new Instance("orders", "router", "host-1", NOW_US, Map.of()), sink, clock);
    }

    @ParameterizedTest
    @CsvSource({
        "orders, router, ''",
        "orders, router, ",
        "orders, router, ftp://x",
        "orders, router, spool:",
        "orders, router, kafka://user:secret@broker:9092/topic",
        "orders, router, kafka://broker",
        "a stream, router, spool:/tmp/x",
        "orders, , spool:/tmp/x",
    })
    void aProbeThatCannotStartDoesNothing(String stream, String node, String sink) {
        try (Probe probe = Probe.start(stream, node, sink)) {
            probe.arrived("a", NOW_US);
            probe.missed("broken");
            assertTrue(probe.flush(0));
            assertEquals(0, probe.droppedTotal());
        }
    }

    @Test
    void aFullQueueDropsAndCounts() {
        Probe probe = start();
        for (int number = 0; number < Sender.MAX_STAMPS + 5; number++) {
            probe.arrived(number, NOW_US);
        }
        assertEquals(5, probe.droppedTotal());
        probe.close();
        assertTrue(sink.records.stream().allMatch(sent -> sent.count() <= StampPacker.BATCH_OBSERVATIONS));
        assertEquals(Sender.MAX_STAMPS, sink.records.stream().mapToLong(SentRecord::count).sum());
        assertEquals(List.of(new Drop(Limits.windowStartMs(NOW_US), 5, "queue full")),
            sink.records.stream().flatMap(sent -> sent.drops().stream()).toList());
    }

    @Test
    void longIdsTakeBoundedMemory() {
        Probe probe = start();
        String megabyte = "x".repeat(1024 * 1024);
        for (int number = 0; number < 20; number++) {
            probe.arrived(megabyte + number, NOW_US);
        }
        assertEquals(5, probe.droppedTotal());
        probe.flush(0);
        probe.arrived(megabyte, NOW_US);
        assertEquals(5, probe.droppedTotal());
    }

    @Test
    void anIdThatIsChangedLaterIsTheOneThatWasPassed() {
        Probe probe = start();
        byte[] id = new byte[16];
        probe.arrived(id, NOW_US);
        id[0] = 1;
        probe.flush(0);
        Probe other = start();
        other.arrived(new byte[16], NOW_US);
        other.flush(0);
        assertArrayEquals(sink.records.get(1).bytes(), sink.records.get(3).bytes());
    }

    @Test
    void stampsBehindTheEndAreNotCoveredByTheBye() {
        Probe probe = start();
        probe.close();
        int sent = sink.records.size();
        probe.arrived("late", NOW_US);
        probe.close();
        assertTrue(probe.flush(0));
        assertEquals(sent, sink.records.size());
    }

    @Test
    @Timeout(60)
    void aRunningProbeSendsByItself(@TempDir Path root) throws IOException, InterruptedException {
        try (Probe probe = Probe.start("orders", "router", "spool:" + root)) {
            try (Stream<Path> folders = Files.list(root)) {
                assertEquals(1, folders.flatMap(ProbeTest::list).filter(name -> name.endsWith(".seg")).count(),
                    "the hello is there before the first stamp");
            }
            for (int number = 0; number < 100; number++) {
                probe.departed("order-" + number, Clock.SYSTEM.wallUs());
            }
            long before = countSegments(root);
            while (countSegments(root) == before) {
                Thread.sleep(50);
            }
        }
        assertTrue(countSegments(root) >= 3);
    }

    private static long countSegments(Path root) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            return files.filter(file -> file.toString().endsWith(".seg")).count();
        }
    }

    private static Stream<String> list(Path folder) {
        return Stream.of(folder.toFile().list());
    }

    @Test
    @Timeout(60)
    void brokersThatDoNotAnswerDelayAStartByASecondAtMost() {
        long sinceNs = System.nanoTime();
        Probe probe = Probe.start("orders", "router", "kafka://127.0.0.1:9/topic");
        assertTrue(System.nanoTime() - sinceNs < 5_000_000_000L);
        probe.arrived("a", Clock.SYSTEM.wallUs());
        assertFalse(probe.flush(0));
        probe.close();
    }

    @Test
    @Timeout(60)
    void anInterruptedHostEndsItsProbe(@TempDir Path root) throws IOException, InterruptedException {
        Probe probe = Probe.start("orders", "router", "spool:" + root);
        Thread.currentThread().interrupt();
        probe.close();
        assertTrue(Thread.interrupted());
        while (countSegments(root) < 2) {
            Thread.sleep(50);
        }
    }
}
