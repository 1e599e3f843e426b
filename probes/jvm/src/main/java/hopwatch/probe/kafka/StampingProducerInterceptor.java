package hopwatch.probe.kafka;

import hopwatch.probe.Probe;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;

/**
 * Interceptor of a producer: it marks each message by a header, and stamps {@code out} when the brokers acknowledge it.
 *
 * <pre>{@code
 * interceptor.classes=hopwatch.probe.kafka.StampingProducerInterceptor
 * hopwatch.service=shop
 * hopwatch.sink=kafka://broker:9092/hopwatch.observations
 * }</pre>
 *
 * <p>It needs kafka-clients 4.1 or newer: older ones do not tell which message was acknowledged. A message that a
 * transaction may abort is not marked, and so expected nowhere.
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class StampingProducerInterceptor<K, V> implements ProducerInterceptor<K, V> {
    private static final String TRACE_HEADER = "traceparent";
    private static final Pattern TRACE = Pattern.compile("[0-9a-f]{2}-([0-9a-f]{32}-[0-9a-f]{16})-[0-9a-f]{2}.*");
    private static final int NUMBER_DIGITS = 12;
    /** Of all interceptors of the process: their ids are told apart by their numbers. */
    private static final String PROCESS = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt())
        + Long.toHexString(ProcessHandle.current().pid());
    private static final AtomicLong NUMBERS = new AtomicLong();

    private final TopicProbes probes = new TopicProbes();
    private boolean isOn;

    /** Make an interceptor, as Kafka's clients do. */
    public StampingProducerInterceptor() {}

    @Override
    public void configure(Map<String, ?> settings) {
        try {
            probes.configure(settings);
            isOn = probes.areOn() && isPossible(settings);
        } catch (RuntimeException | LinkageError error) {
            probes.warn("no message is stamped", error);
        }
    }

    private boolean isPossible(Map<String, ?> settings) {
        if (settings.get("transactional.id") != null) {
            probes.warn("no message is stamped: this producer has transactions, and nobody tells an interceptor whether"
                + " one was aborted", null);
            return false;
        }
        try {
            ProducerInterceptor.class.getMethod(
                "onAcknowledgement", RecordMetadata.class, Exception.class, Headers.class);
            return true;
        } catch (NoSuchMethodException error) {
            probes.warn("no message is stamped: this needs kafka-clients 4.1 or newer", null);
            return false;
        }
    }

    @Override
    public ProducerRecord<K, V> onSend(ProducerRecord<K, V> message) {
        try {
            boolean hasMark = message.headers().lastHeader(MessageMark.HEADER) != null;
            boolean isMarked = isOn && Probe.isName(message.topic());
            if (!hasMark && !isMarked) {
                return message;
            }
            // A record of its own: the service may send its record again, and that is another message.
            ProducerRecord<K, V> sent = new ProducerRecord<>(message.topic(), message.partition(), message.timestamp(),
                message.key(), message.value(), message.headers());
            // It came with a message that was received, and whose headers are passed on.
            sent.headers().remove(MessageMark.HEADER);
            if (isMarked && probes.find(message.topic()) != null) {
                String messageId = generateId(message.headers());
                MessageMark mark = new MessageMark(PROCESS, Probe.nowUs(), message.topic(), messageId);
                sent.headers().add(MessageMark.HEADER, mark.format());
            }
            return sent;
        } catch (RuntimeException | LinkageError error) {
            probes.warn("a message that is sent is not stamped", error);
            return message;
        }
    }

    /** Return an id that begins with those of trace and span, where a tracer has put them into the headers. */
    private static String generateId(Headers headers) {
        String number = PROCESS + HexFormat.of().toHexDigits(NUMBERS.getAndIncrement(), NUMBER_DIGITS);
        Header trace = headers.lastHeader(TRACE_HEADER);
        if (trace != null && trace.value() != null) {
            Matcher found = TRACE.matcher(new String(trace.value(), StandardCharsets.UTF_8));
            if (found.matches()) {
                return found.group(1) + "-" + number;
            }
        }
        return number;
    }

    /** Do nothing: clients before 4.1 call this, which does not say which message it is; it has no default there. */
    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {}

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error, Headers headers) {
        if (!isOn || error != null) {
            return;
        }
        try {
            Header header = headers.lastHeader(MessageMark.HEADER);
            if (header != null) {
                MessageMark mark = MessageMark.parse(header.value());
                Probe probe = probes.find(mark.topic());
                if (probe != null) {
                    probe.departed(mark.messageId(), mark.eventUs());
                }
            }
        } catch (RuntimeException | LinkageError failed) {
            probes.warn("a message that was sent is not stamped", failed);
        }
    }

    @Override
    public void close() {
        isOn = false;
        probes.close();
    }
}
