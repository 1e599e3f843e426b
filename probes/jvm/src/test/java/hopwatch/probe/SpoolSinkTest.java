package hopwatch.probe;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Segments of a spool: whole, in order, within their bounds. */
class SpoolSinkTest {
    private static final String INSTANCE = "orders.router.host-1.17";

    @TempDir
    Path root;

    private final ManualClock clock = new ManualClock(0);

    private SpoolSink open(long maxBytes) {
        return new SpoolSink(root, INSTANCE, clock, maxBytes);
    }

    private static SentRecord record(int bytes) {
        return new SentRecord(new byte[bytes], 0, 1, List.of());
    }

    private List<String> listFiles() throws IOException {
        try (Stream<Path> files = Files.list(root.resolve(INSTANCE))) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "orders.router.host-1.17, orders.router.host-1.17",
        ".hidden, -hidden-89faa4effe55",
        "_x.y, -x.y-96a4a6931567",
        "a b/ü, a-b---194372a55d85",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-a2eeb623c110",
    })
    void aFolderHasTheNameThatPythonGivesIt(String instance, String folder) {
        assertEquals(folder, SpoolSink.folderName(instance));
    }

    @Test
    void aSegmentIsMagicThenFramesOfLengthCrcAndRecord() throws IOException {
        SpoolSink sink = open(SpoolSink.MAX_BYTES);
        assertTrue(sink.send(new SentRecord("123456789".getBytes(), 0, 1, List.of())));
        assertTrue(sink.send(record(1)));
        assertTrue(sink.settle(0));
        byte[] expected = HexFormat.of().parseHex("48575350310a" + "09000000" + "839206e3" + "313233343536373839"
            + "01000000" + "51537d52" + "00");
        assertArrayEquals(expected, Files.readAllBytes(root.resolve(INSTANCE).resolve("0000000000.seg")));
    }

    @Test
    void aSegmentIsPublishedOnceItIsASecondOld() throws IOException {
        SpoolSink sink = open(SpoolSink.MAX_BYTES);
        sink.send(record(10));
        clock.advance(999_999);
        sink.tick();
        assertEquals(List.of("0000000000.open"), listFiles());
        clock.advance(1);
        sink.tick();
        sink.send(record(10));
        sink.close();
        assertEquals(List.of("0000000000.seg", "0000000001.seg"), listFiles());
    }

    @Test
    void aLargeSegmentIsPublishedAtOnce() throws IOException {
        SpoolSink sink = open(SpoolSink.MAX_BYTES);
        sink.send(record(4 * 1024 * 1024));
        sink.send(record(4 * 1024 * 1024));
        assertEquals(List.of("0000000000.seg"), listFiles());
    }

    @Test
    void aFullSpoolRefusesUntilTheMonitorHasDeletedSegments() throws IOException {
        SpoolSink sink = open(1_000);
        assertTrue(sink.send(record(900)));
        assertFalse(sink.send(record(900)));
        sink.settle(0);
        clock.advance(1_000_000);
        assertFalse(sink.send(record(900)));
        Files.delete(root.resolve(INSTANCE).resolve("0000000000.seg"));
        assertFalse(sink.send(record(900)), "it pauses for a second");
        clock.advance(1_000_000);
        assertTrue(sink.send(record(900)));
    }

    @Test
    void aFolderThatCannotBeRefusesAndKeepsNothing() throws IOException {
        Files.writeString(root.resolve(INSTANCE), "a file");
        SpoolSink sink = open(SpoolSink.MAX_BYTES);
        assertFalse(sink.send(record(1)));
        Files.delete(root.resolve(INSTANCE));
        clock.advance(1_000_000);
        assertTrue(sink.send(record(1)));
        sink.close();
        assertEquals(List.of("0000000000.seg"), listFiles());
    }

    @Test
    void aSegmentThatCannotBePublishedIsAHoleThatIsTold() throws IOException {
        SpoolSink sink = open(SpoolSink.MAX_BYTES);
        sink.send(record(1));
        // Nothing can be renamed to the name of a folder with something in it.
        Files.createDirectories(root.resolve(INSTANCE).resolve("0000000000.seg").resolve("x"));
        assertFalse(sink.settle(0));
        clock.advance(1_000_000);
        assertTrue(sink.send(record(1)));
        assertTrue(sink.settle(0));
        assertEquals(List.of("0000000000.seg", "0000000001.seg"), listFiles());
    }
}
