import com.sun.management.OperatingSystemMXBean;
import hopwatch.probe.Probe;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Cost of a stamp, and of Kafka's clients with and without interceptors; a line a measurement: name, ns, CPU ns. */
public class JvmCost {
    private static final OperatingSystemMXBean MACHINE =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private interface Work {
        /** Do the work, and return the ns that the host's thread took for it. */
        long run() throws Exception;
    }

    /** Arguments: brokers, sink, topic, messages a round, rounds behind the two that warm up. */
    public static void main(String[] said) throws Exception {
        int messages = Integer.parseInt(said[3]);
        int rounds = Integer.parseInt(said[4]) + 2;
        Map<String, Object> bare = new HashMap<>(Map.of("bootstrap.servers", said[0], "auto.offset.reset", "earliest"));
        Map<String, Object> sending = new HashMap<>(bare);
        sending.putAll(Map.of("interceptor.classes", "hopwatch.probe.kafka.StampingProducerInterceptor",
            "hopwatch.service", "sender", "hopwatch.sink", said[1]));
        Map<String, Object> receiving = new HashMap<>(sending);
        receiving.putAll(Map.of("interceptor.classes", "hopwatch.probe.kafka.StampingConsumerInterceptor",
            "hopwatch.service", "receiver"));
        try (Probe probe = Probe.start("orders", "router", said[1])) {
            for (int round = 0; round < rounds; round++) {
                boolean isShown = round >= 2;
                tell(isShown, "stamp", messages, () -> stamp(probe, messages));
                tell(isShown, "send", messages, () -> send(bare, said[2], messages));
                tell(isShown, "send stamped", messages, () -> send(sending, said[2], messages));
                tell(isShown, "receive", messages, () -> receive(bare, said[2], messages));
                tell(isShown, "receive stamped", messages, () -> receive(receiving, said[2], messages));
            }
            if (probe.droppedTotal() > 0) {
                throw new IllegalStateException(probe.droppedTotal() + " stamps were dropped");
            }
        }
    }

    private static void tell(boolean isShown, String name, int messages, Work work) throws Exception {
        long before = MACHINE.getProcessCpuTime();
        long hostNs = work.run();
        long cpuNs = MACHINE.getProcessCpuTime() - before;
        if (isShown) {
            System.out.printf("%s,%.1f,%.1f%n", name, (double) hostNs / messages, (double) cpuNs / messages);
        }
    }

    private static long stamp(Probe probe, int messages) {
        long eventUs = System.currentTimeMillis() * 1_000;
        String[] ids = new String[messages];
        for (int number = 0; number < messages; number++) {
            ids[number] = "order-" + number;
        }
        long sinceNs = System.nanoTime();
        for (String id : ids) {
            probe.arrived(id, eventUs);
        }
        long tookNs = System.nanoTime() - sinceNs;
        probe.flush(10_000);
        return tookNs;
    }

    private static long send(Map<String, Object> settings, String topic, int messages) {
        StringSerializer text = new StringSerializer();
        String value = "x".repeat(100);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            producer.send(new ProducerRecord<>(topic, value));
            producer.flush();
            long sinceNs = System.nanoTime();
            for (int number = 0; number < messages; number++) {
                producer.send(new ProducerRecord<>(topic, value));
            }
            producer.flush();
            return System.nanoTime() - sinceNs;
        }
    }

    private static long receive(Map<String, Object> settings, String topic, int messages) {
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToEnd(List.of(place));
            consumer.seek(place, consumer.position(place) - messages);
            int found = consumer.poll(Duration.ofSeconds(10)).count();
            long sinceNs = System.nanoTime();
            while (found < messages) {
                found += consumer.poll(Duration.ofSeconds(10)).count();
            }
            return System.nanoTime() - sinceNs;
        }
    }
}
