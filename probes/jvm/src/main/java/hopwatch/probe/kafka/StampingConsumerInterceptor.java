package hopwatch.probe.kafka;

import hopwatch.probe.Probe;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/**
 * Interceptor of a consumer: it stamps {@code in} of each message that has a mark, as it is polled.
 *
 * <pre>{@code
 * interceptor.classes=hopwatch.probe.kafka.StampingConsumerInterceptor
 * hopwatch.service=billing
 * hopwatch.sink=kafka://broker:9092/hopwatch.observations
 * }</pre>
 *
 * @param <K> type of keys
 * @param <V> type of values
 */
public final class StampingConsumerInterceptor<K, V> implements ConsumerInterceptor<K, V> {
    private static final String BAD_MARK = "bad marks";

    private final TopicProbes probes = new TopicProbes();

    /** Make an interceptor, as Kafka's clients do. */
    public StampingConsumerInterceptor() {}

    @Override
    public void configure(Map<String, ?> settings) {
        try {
            probes.configure(settings);
        } catch (RuntimeException | LinkageError error) {
            probes.warn("no message is stamped", error);
        }
    }

    @Override
    public ConsumerRecords<K, V> onConsume(ConsumerRecords<K, V> messages) {
        if (probes.areOn()) {
            for (ConsumerRecord<K, V> message : messages) {
                for (Header header : message.headers().headers(MessageMark.HEADER)) {
                    stamp(header.value());
                }
            }
        }
        return messages;
    }

    private void stamp(byte[] value) {
        try {
            MessageMark mark = MessageMark.parse(value);
            Probe probe = probes.find(mark.topic());
            if (probe != null) {
                probe.arrived(mark.messageId(), mark.eventUs());
            }
        } catch (RuntimeException | LinkageError error) {
            // It may be any message of any topic.
            probes.miss(BAD_MARK);
            probes.warn("a message that is received is not stamped", error);
        }
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        // What counts is that a message was received.
    }

    @Override
    public void close() {
        probes.close();
    }
}
