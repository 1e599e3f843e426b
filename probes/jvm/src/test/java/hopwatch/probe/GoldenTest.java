package hopwatch.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Records are byte for byte those of the golden files, which the probe in Python writes. */
class GoldenTest {
    private static final HexFormat HEX = HexFormat.of();
    private static final long FIRST_MINUTE = 10_000;
    private static final int MAX_SHOWN_BYTES = 400;

    private static List<JsonNode> read(String name) throws IOException {
        ObjectMapper mapper = new ObjectMapper();
        List<JsonNode> lines = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(System.getProperty("golden"), name))) {
            lines.add(mapper.readTree(line));
        }
        return lines;
    }

    /** Whether this probe can say a record: it counts no messages, and defers none. */
    private static boolean isSaid(JsonNode line) {
        JsonNode fields = line.path("fields");
        return line.path("version").asInt() == 2
            && !fields.path("kind").asText().equals("METRICS")
            && fields.path("until_us").asText().isEmpty()
            && fields.path("sequence").asText().isEmpty();
    }

    @TestFactory
    Stream<DynamicTest> everyVectorIsWrittenAsItStands() throws IOException {
        return read("vectors.jsonl").stream().filter(GoldenTest::isSaid)
            .map(line -> DynamicTest.dynamicTest(line.get("name").asText(),
                () -> assertEquals(line.get("record").asText(), HEX.formatHex(build(line.get("fields")).encode()))));
    }

    @TestFactory
    Stream<DynamicTest> everySessionSendsTheSameRecords() throws IOException {
        return read("sessions.jsonl").stream()
            .map(session -> DynamicTest.dynamicTest(session.get("name").asText(), () -> assertEquals(
                list(session.get("records")).map(JsonNode::asText).toList(), new Session(session).play())));
    }

    @Test
    void thereAreAtLeastTwoHundredRecords() throws IOException {
        long vectors = read("vectors.jsonl").stream().filter(GoldenTest::isSaid).count();
        long records = read("sessions.jsonl").stream().mapToLong(session -> session.get("records").size()).sum();
        assertTrue(vectors >= 60, "got " + vectors);
        assertTrue(records >= 1_000, "got " + records);
    }

    private static Stream<JsonNode> list(JsonNode items) {
        return StreamSupport.stream(items.spliterator(), false);
    }

    private static Map<String, String> readLabels(JsonNode said) {
        Map<String, String> labels = new LinkedHashMap<>();
        said.properties().forEach(label -> labels.put(label.getKey(), label.getValue().asText()));
        return labels;
    }

    private static Batch build(JsonNode fields) {
        Instance instance = new Instance(fields.get("stream").asText(), fields.get("node").asText(),
            fields.get("probe").asText(), fields.get("epoch_us").asLong(), readLabels(fields.get("labels")));
        Observations observations = new Observations(fields.get("window_start_ms").asLong(), fields.get("count").asInt(),
            parse(fields, "message_ids"), parse(fields, "event_offset_us"), parse(fields, "lag_in_us"),
            parse(fields, "lag_out_us"), parse(fields, "outcome"), parse(fields, "reason"),
            list(fields.get("reasons")).map(JsonNode::asText).toList(),
            MessageId.Kind.valueOf(fields.get("id_kind").asText()), parse(fields, "id_texts"),
            parse(fields, "id_text_ends"));
        List<Drop> drops = list(fields.get("drops"))
            .map(drop -> new Drop(drop.get("window_start_ms").asLong(), drop.get("count").asLong(),
                drop.get("cause").asText())).toList();
        return new Batch(instance, fields.get("seq").asLong(), Batch.Kind.valueOf(fields.get("kind").asText()),
            fields.get("sent_at_us").asLong(), fields.get("complete_through_us").asLong(), observations, drops);
    }

    private static byte[] parse(JsonNode fields, String name) {
        return HEX.parseHex(fields.get(name).asText());
    }

    /** Session of a probe with a clock and a sink of its own. */
    private static final class Session {
        private final JsonNode steps;
        private final ManualClock clock;
        private final MemorySink sink = new MemorySink();
        private final Probe probe;

        Session(JsonNode session) {
            steps = session.get("steps");
            clock = new ManualClock(session.get("epoch_us").asLong());
            Instance instance = new Instance("orders", "router", "host-1", clock.wallUs(),
                readLabels(session.get("labels")));
            probe = Probe.startQuiet(instance, sink, clock);
        }

        List<String> play() {
            steps.forEach(this::act);
            probe.abandon();
            return sink.records.stream().map(sent -> describe(sent.bytes())).toList();
        }

        private void act(JsonNode step) {
            switch (step.get(0).asText()) {
                case "advance" -> clock.advance(step.get(1).asLong());
                case "arrived" -> probe.arrived(readId(step.get(1)), step.get(2).asLong());
                case "departed" -> probe.departed(readId(step.get(1)), step.get(2).asLong());
                case "filtered" -> probe.filtered(readId(step.get(1)), step.get(2).asLong(), readReason(step.get(3)));
                case "rejected" -> probe.rejected(readId(step.get(1)), step.get(2).asLong(), readReason(step.get(3)));
                case "missed" -> probe.missed(step.get(1).asText(), step.get(2).asLong());
                case "miss_many" -> {
                    for (int number = 0; number < step.get(1).asInt(); number++) {
                        probe.missed("broken", (FIRST_MINUTE + number) * Limits.WINDOW_US);
                    }
                }
                case "sink" -> sink.how = step.get(1).asText();
                case "fail" -> sink.fail(step.get(1).asInt());
                case "flush" -> probe.flush(0);
                case "close" -> probe.close();
                default -> throw new IllegalArgumentException("no step is " + step);
            }
        }

        private static String readReason(JsonNode said) {
            return said.isNull() ? null : said.asText();
        }

        private static Object readId(JsonNode said) {
            String kind = said.fieldNames().next();
            String value = said.get(kind).asText();
            return switch (kind) {
                case "text" -> value;
                case "long_text" -> value + "z".repeat(1_000);
                case "uuid" -> UUID.fromString(value);
                case "int" -> new BigInteger(value);
                case "bytes" -> HEX.parseHex(value);
                default -> true;
            };
        }

        private static String describe(byte[] record) {
            if (record.length <= MAX_SHOWN_BYTES) {
                return HEX.formatHex(record);
            }
            try {
                return "sha256:" + HEX.formatHex(MessageDigest.getInstance("SHA-256").digest(record));
            } catch (NoSuchAlgorithmException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
