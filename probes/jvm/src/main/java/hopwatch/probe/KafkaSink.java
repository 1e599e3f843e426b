package hopwatch.probe;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sink that sends the records of one instance to a topic under one key, so that they keep their order; they are
 * acknowledged by all in-sync replicas, and wait in bounded memory for brokers that are down.
 */
final class KafkaSink implements Sink {
    static final String SCHEME = "kafka://";
    static final String DEFAULT_TOPIC = "hopwatch.observations";
    /** Bytes that wait for the brokers at most. */
    static final long MAX_BYTES = 64L * 1024 * 1024;

    private static final Pattern URL = Pattern.compile("kafka://([^/@\\s]+:\\d{1,5})(?:/([A-Za-z0-9._-]{1,249})?)?");
    private static final long MAX_BLOCK_MS = 1_000;
    private static final long CLOSE_MS = 2_000;
    private static final Logger LOG = LoggerFactory.getLogger("hopwatch.probe");

    private final String topic;
    private final byte[] key;
    private final Map<String, Object> access;
    private final Map<String, Object> settings;
    private final OncePerCause logged = new OncePerCause();
    private final List<SentRecord> failed = new ArrayList<>();
    /** Client that looks for the topic, until it is found. */
    private Admin admin;
    private KafkaProducer<byte[], byte[]> producer;
    private long waitingBytes;
    private volatile boolean isBroken;

    /**
     * Set the topic; no connection is made before the first record.
     *
     * @param client settings of the client beside the sink's own, such as of its security
     * @throws IllegalArgumentException the URL is none of a topic
     */
    KafkaSink(String url, String instance, Map<String, ?> client) {
        Matcher found = URL.matcher(url);
        if (!found.matches()) {
            throw new IllegalArgumentException("a Kafka URL is kafka://HOST:PORT/TOPIC, got " + url);
        }
        topic = found.group(2) == null ? DEFAULT_TOPIC : found.group(2);
        key = instance.getBytes(StandardCharsets.UTF_8);
        access = new HashMap<>(client);
        access.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, found.group(1));
        access.put(ProducerConfig.CLIENT_ID_CONFIG, "hopwatch-probe");
        // Clients log each failed attempt to connect.
        access.put(ProducerConfig.RECONNECT_BACKOFF_MS_CONFIG, 1_000L);
        access.put(ProducerConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 10_000L);
        settings = new HashMap<>(access);
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, true);
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "gzip");
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 50);
        settings.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, Limits.MAX_RECORD_BYTES + 4_096);
        settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, MAX_BLOCK_MS);
        settings.put(ProducerConfig.BUFFER_MEMORY_CONFIG, 2 * MAX_BYTES);
        // A record that waits costs no more than one that is refused in its place.
        settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, Integer.MAX_VALUE);
    }

    @Override
    public boolean send(SentRecord sent) {
        synchronized (this) {
            if (waitingBytes + sent.bytes().length > MAX_BYTES) {
                logOnce("takes no more: " + MAX_BYTES + " bytes wait for its brokers", null);
                return false;
            }
        }
        try {
            connect();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return false;
        } catch (RuntimeException | ExecutionException | TimeoutException error) {
            logOnce("cannot be reached", error);
            return false;
        }
        addWaiting(sent.bytes().length);
        try {
            producer.send(new ProducerRecord<>(topic, key, sent.bytes()), (metadata, error) -> {
                addWaiting(-sent.bytes().length);
                if (error != null) {
                    fail(sent, error);
                }
            });
        } catch (RuntimeException error) {
            addWaiting(-sent.bytes().length);
            throw error;
        }
        return true;
    }

    /** Have a client that knows the topic: one is made where there is none, or where the last has refused a record. */
    private void connect() throws InterruptedException, ExecutionException, TimeoutException {
        if (isBroken && producer != null) {
            producer.close(Duration.ZERO);
            producer = null;
        }
        isBroken = false;
        if (producer == null) {
            // A producer would make a topic that is not there, with settings that do not fit.
            if (admin == null) {
                Map<String, Object> looking = new HashMap<>(access);
                // Otherwise it begins anew without a pause, and logs that, while no broker answers.
                looking.put("metadata.recovery.strategy", "none");
                admin = Admin.create(looking);
            }
            admin.describeTopics(List.of(topic)).allTopicNames().get(MAX_BLOCK_MS, TimeUnit.MILLISECONDS);
            closeAdmin();
            producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        }
        // The client waits here for a second at most, and not in its method that sends.
        producer.partitionsFor(topic);
    }

    private void closeAdmin() {
        if (admin != null) {
            admin.close(Duration.ZERO);
            admin = null;
        }
    }

    private synchronized void addWaiting(long bytes) {
        waitingBytes += bytes;
        notifyAll();
    }

    private synchronized void fail(SentRecord sent, Exception error) {
        failed.add(sent);
        isBroken = true;
        logOnce("refused a record", error);
    }

    @Override
    public synchronized List<SentRecord> takeFailed() {
        List<SentRecord> taken = List.copyOf(failed);
        failed.clear();
        return taken;
    }

    @Override
    public void tick() {
        // The client has a thread of its own.
    }

    @Override
    public synchronized boolean settle(long patienceMs) {
        long untilNs = System.nanoTime() + patienceMs * 1_000_000;
        try {
            while (waitingBytes > 0) {
                long leftMs = (untilNs - System.nanoTime()) / 1_000_000;
                if (leftMs <= 0) {
                    return false;
                }
                wait(leftMs);
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return false;
        }
        return failed.isEmpty();
    }

    @Override
    public void close() {
        if (!settle(CLOSE_MS)) {
            logOnce("did not take all records within two seconds", null);
        }
        closeAdmin();
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
    }

    /** Log each reason once; the texts of a client hold durations and counts. */
    private void logOnce(String why, Exception error) {
        if (logged.isNew(why)) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            LOG.warn("the topic " + topic + " " + why + (cause == null ? "" : ": " + cause));
        }
    }
}
