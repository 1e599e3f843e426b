package hopwatch.probe.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each message that is sent is a new one, and only what is certain is stamped. */
class InterceptorTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

    @TempDir
    Path spool;

    private final StampingProducerInterceptor<String, String> producer = new StampingProducerInterceptor<>();
    private final StampingConsumerInterceptor<String, String> consumer = new StampingConsumerInterceptor<>();

    private Map<String, Object> settings(Object... more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("hopwatch.service", "shop");
        settings.put("hopwatch.sink", "spool:" + spool);
        for (int place = 0; place < more.length; place += 2) {
            settings.put((String) more[place], more[place + 1]);
        }
        return settings;
    }

    private static ProducerRecord<String, String> message() {
        return new ProducerRecord<>("orders", "key", "value");
    }

    private static MessageMark readMark(ProducerRecord<String, String> sent) {
        return MessageMark.parse(sent.headers().lastHeader(MessageMark.HEADER).value());
    }

    private void consume(byte[]... marks) {
        ConsumerRecord<String, String> message = new ConsumerRecord<>("orders", 0, 7, "key", "value");
        for (byte[] mark : marks) {
            message.headers().add(MessageMark.HEADER, mark);
        }
        var messages = new ConsumerRecords<>(Map.of(new TopicPartition("orders", 0), List.of(message)), Map.of());
        assertSame(messages, consumer.onConsume(messages));
    }

    /** All bytes of the spool: ids that are texts stand in it as they are. */
    private String readSpool() throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try (Stream<Path> files = Files.walk(spool)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                all.write(Files.readAllBytes(file));
            }
        }
        return all.toString(StandardCharsets.ISO_8859_1);
    }

    @Test
    void aMessageThatIsAcknowledgedIsStamped() throws IOException {
        producer.configure(settings());
        ProducerRecord<String, String> sent = producer.onSend(message());
        producer.onAcknowledgement(null, null, sent.headers());
        producer.close();
        assertEquals("orders", readMark(sent).topic());
        assertTrue(readSpool().contains(readMark(sent).messageId()));
        assertTrue(readSpool().contains("shop"));
    }

    @Test
    void aMessageThatFailsIsNotStamped() throws IOException {
        producer.configure(settings());
        ProducerRecord<String, String> sent = producer.onSend(message());
        producer.onAcknowledgement(null, new IllegalStateException("refused"), sent.headers());
        producer.close();
        assertFalse(readSpool().contains(readMark(sent).messageId()));
    }

    @Test
    void aRecordThatIsSentAgainIsAnotherMessage() {
        producer.configure(settings());
        ProducerRecord<String, String> once = message();
        ProducerRecord<String, String> first = producer.onSend(once);
        ProducerRecord<String, String> second = producer.onSend(once);
        assertNull(once.headers().lastHeader(MessageMark.HEADER));
        assertNotEquals(readMark(first).messageId(), readMark(second).messageId());
        assertEquals(List.of("orders", "key", "value"), List.of(first.topic(), first.key(), first.value()));
        producer.close();
    }

    @Test
    void aMarkThatWasReceivedIsReplacedAndOtherHeadersStay() {
        producer.configure(settings());
        ProducerRecord<String, String> passedOn = message();
        passedOn.headers().add("tenant", new byte[] {7}).add(MessageMark.HEADER, "a;1;before;x".getBytes());
        Header[] headers = producer.onSend(passedOn).headers().toArray();
        assertEquals(List.of("tenant", MessageMark.HEADER), Stream.of(headers).map(Header::key).toList());
        assertEquals("orders", MessageMark.parse(headers[1].value()).topic());
        producer.close();
    }

    @Test
    void anIdBeginsWithTraceAndSpan() {
        producer.configure(settings());
        ProducerRecord<String, String> traced = message();
        traced.headers().add("traceparent", ("00-" + TRACE + "-01").getBytes());
        assertTrue(readMark(producer.onSend(traced)).messageId().matches(TRACE + "-[0-9a-f]+"));
        ProducerRecord<String, String> odd = message();
        odd.headers().add("traceparent", "nothing".getBytes());
        assertTrue(readMark(producer.onSend(odd)).messageId().matches("[0-9a-f]+"));
        producer.close();
    }

    @Test
    void messagesOfTransactionsAreExpectedNowhere() {
        producer.configure(settings("transactional.id", "t"));
        ProducerRecord<String, String> passedOn = message();
        passedOn.headers().add(MessageMark.HEADER, "a;1;before;x".getBytes());
        assertNull(producer.onSend(passedOn).headers().lastHeader(MessageMark.HEADER));
        producer.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a service", "ü"})
    void aServiceWithoutANameStampsNothing(String service) throws IOException {
        producer.configure(settings("hopwatch.service", service));
        consumer.configure(settings("hopwatch.service", service));
        ProducerRecord<String, String> once = message();
        assertSame(once, producer.onSend(once));
        consume("a;1;orders;x".getBytes());
        producer.close();
        consumer.close();
        assertEquals("", readSpool());
    }

    @Test
    void aTopicThatCanBeNoStreamIsNotStamped() {
        producer.configure(settings());
        ProducerRecord<String, String> once = new ProducerRecord<>("t".repeat(129), "value");
        assertSame(once, producer.onSend(once));
        producer.close();
    }

    @Test
    void aMessageThatIsReceivedIsStampedByEachMark() throws IOException {
        consumer.configure(settings("hopwatch.service", "billing"));
        consume();
        assertEquals("", readSpool());
        String nowUs = System.currentTimeMillis() + "000";
        consume(("a;" + nowUs + ";orders;first").getBytes(), ("b;" + nowUs + ";orders;second").getBytes());
        consumer.close();
        assertTrue(readSpool().contains("firstsecond"));
    }

    @Test
    void aMarkThatCannotBeReadIsCountedWithAllTopics() throws IOException {
        consumer.configure(settings("hopwatch.service", "billing"));
        consume(("a;" + System.currentTimeMillis() + "000;orders;first").getBytes());
        consume("spoiled".getBytes(), null);
        consumer.close();
        assertTrue(readSpool().contains("bad marks"));
    }

    @Test
    void aMarkOfAServiceInPythonIsRead() {
        String value = "5f0c3a917b4;1796045640868444;orders;" + TRACE + "-0";
        MessageMark mark = MessageMark.parse(value.getBytes());
        assertEquals(new MessageMark("5f0c3a917b4", 1796045640868444L, "orders", TRACE + "-0"), mark);
        assertEquals(value, new String(mark.format(), StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a;1;orders", "a;x;orders;id", "g;1;orders;id", "a;1;or ders;id", "a;1;orders;"})
    void whatIsNoMarkIsNamed(String value) {
        String told = assertThrows(IllegalArgumentException.class, () -> MessageMark.parse(value.getBytes())).getMessage();
        assertEquals("hopwatch-message has a process, a time, a topic and an id, got '" + value + "'", told);
    }

    @Test
    void aHostileMarkIsShortInTheLog() {
        byte[] hostile = ("\n\u001b[2J" + "x".repeat(1_000_000)).getBytes();
        String told = assertThrows(IllegalArgumentException.class, () -> MessageMark.parse(hostile)).getMessage();
        assertTrue(told.endsWith("got '??[2J" + "x".repeat(75) + "'"), told);
    }

    @Test
    void topicsBeyondTheBoundAreAnnouncedAndAbandoned() throws IOException {
        TopicProbes probes = new TopicProbes();
        probes.configure(settings());
        for (int number = 0; number <= TopicProbes.MAX_TOPICS; number++) {
            probes.find("topic-" + number).arrived("id-of-" + number + ".", System.currentTimeMillis() * 1_000);
        }
        probes.close();
        assertTrue(readSpool().contains("id-of-63."));
        assertFalse(readSpool().contains("id-of-64."));
        assertTrue(readSpool().contains("topic-64"));
    }
}
