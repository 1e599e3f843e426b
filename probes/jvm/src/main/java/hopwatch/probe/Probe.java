package hopwatch.probe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Probe of one stream at one node: it stamps messages as they arrive and leave.
 *
 * <pre>{@code
 * Probe probe = Probe.start("orders", "router", "spool:/var/spool/hopwatch");
 * probe.arrived(messageId, eventTimeUs);
 * handle(message);
 * probe.departed(messageId, eventTimeUs);
 * }</pre>
 *
 * <p>An id is a {@link java.util.UUID}, 16 bytes, a whole number or a text; an event time is µs since 1970. Both are set
 * where the message is created, and travel with it. All methods may be called from any thread, and throw nothing.
 */
public final class Probe implements AutoCloseable {
    /** Environment variable that names the sink. */
    public static final String SINK_VARIABLE = "HOPWATCH_SINK";

    private static final Logger LOG = LoggerFactory.getLogger("hopwatch.probe");
    private static final AtomicInteger COUNT = new AtomicInteger();

    /** Null in a probe that does nothing. */
    private final Sender sender;
    private final Clock clock;
    private final Thread hook = new Thread(this::flushAtExit, "hopwatch-probe-exit");
    private volatile boolean isClosed;

    private Probe(Sender sender, Clock clock) {
        this.sender = sender;
        this.clock = clock;
    }

    /**
     * Start a probe and its thread, and announce it to the transport: some ms with a spool, and a second at most.
     *
     * <p>A probe that cannot start logs a warning, and does nothing.
     *
     * @param stream the stream that the messages belong to, 1 to 128 of the characters A-Za-z0-9._-
     * @param node the node that sends or receives them, the same characters
     * @param sink {@code spool:FOLDER} or {@code kafka://HOST:PORT/TOPIC}; null or empty for a probe that does nothing
     */
    public static Probe start(String stream, String node, String sink) {
        return start(stream, node, sink, Map.of());
    }

    /**
     * Start a probe whose sink needs settings of its client.
     *
     * @param stream the stream
     * @param node the node
     * @param sink the URL of the sink
     * @param client settings of the Kafka client of a {@code kafka://} sink, such as of its security
     */
    public static Probe start(String stream, String node, String sink, Map<String, ?> client) {
        try {
            if (sink == null || sink.isEmpty()) {
                throw new IllegalArgumentException("it has no sink, neither given nor in " + SINK_VARIABLE);
            }
            checkName("stream", stream);
            checkName("node", node);
            Instance instance =
                new Instance(stream, node, nameProcess(), Clock.SYSTEM.wallUs(), Map.of());
            return start(instance, openSink(sink, instance.name(), client));
        } catch (RuntimeException | LinkageError error) {
            LOG.warn("a probe of " + stream + " at " + node + " does nothing: " + error.getMessage());
            return new Probe(null, Clock.SYSTEM);
        }
    }

    /** Make a probe without a thread, which sends only where it is asked to. */
    static Probe startQuiet(Instance instance, Sink sink, Clock clock) {
        Probe probe = new Probe(new Sender(instance, sink, clock), clock);
        probe.sender.flush(null);
        return probe;
    }

    private static Probe start(Instance instance, Sink sink) {
        Probe probe = new Probe(new Sender(instance, sink, Clock.SYSTEM), Clock.SYSTEM);
        probe.sender.start();
        try {
            Runtime.getRuntime().addShutdownHook(probe.hook);
        } catch (IllegalStateException error) {
            LOG.warn("a probe starts while the process ends: what it stamps may be unknown");
        }
        return probe;
    }

    /** Return the time of day, in µs since 1970: the event time of a message that is created now. */
    public static long nowUs() {
        return Clock.SYSTEM.wallUs();
    }

    /** Return whether a text can be the name of a stream or a node. */
    public static boolean isName(String text) {
        return Limits.isName(text);
    }

    private static void checkName(String what, String name) {
        if (!isName(name)) {
            throw new IllegalArgumentException(
                "a " + what + " is 1 to 128 of the characters A-Za-z0-9._-, got " + name);
        }
    }

    private static Sink openSink(String url, String instance, Map<String, ?> client) {
        if (url.startsWith(SpoolSink.SCHEME) && !url.equals(SpoolSink.SCHEME)) {
            Path root = Path.of(url.substring(SpoolSink.SCHEME.length()));
            return new SpoolSink(root, instance, Clock.SYSTEM, SpoolSink.MAX_BYTES);
        }
        if (url.startsWith(KafkaSink.SCHEME)) {
            return new KafkaSink(url, instance, client);
        }
        throw new IllegalArgumentException("a sink is spool:FOLDER or kafka://HOST:PORT/TOPIC, got " + url);
    }

    /** Return a name that no other probe has: host, process, and a number within it. */
    private static String nameProcess() {
        String host;
        try {
            // Not by InetAddress, which asks a name server and may wait for it.
            host = Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException error) {
            host = System.getenv().getOrDefault("HOSTNAME", System.getenv().getOrDefault("COMPUTERNAME", "localhost"));
        }
        String own = "-" + ProcessHandle.current().pid() + "-" + COUNT.getAndIncrement();
        return host.substring(0, Math.min(host.length(), Limits.MAX_NAME_CHARS - own.length())) + own;
    }

    /** Stamp {@code in}: the message arrives at this node. */
    public void arrived(Object messageId, long eventTimeUs) {
        stamp(Stamp.Kind.ARRIVED, messageId, eventTimeUs, null);
    }

    /** Stamp {@code out}: the message leaves this node. */
    public void departed(Object messageId, long eventTimeUs) {
        stamp(Stamp.Kind.DEPARTED, messageId, eventTimeUs, null);
    }

    /** Stamp {@code in} of a message that ends here on purpose; call it instead of {@link #arrived}. */
    public void filtered(Object messageId, long eventTimeUs, String reason) {
        stamp(Stamp.Kind.FILTERED, messageId, eventTimeUs, reason);
    }

    /** Stamp {@code in} of a message that is refused as bad; call it instead of {@link #arrived}. */
    public void rejected(Object messageId, long eventTimeUs, String reason) {
        stamp(Stamp.Kind.REJECTED, messageId, eventTimeUs, reason);
    }

    private void stamp(Stamp.Kind kind, Object messageId, long eventTimeUs, String reason) {
        if (sender == null || isClosed) {
            return;
        }
        try {
            Object id = messageId instanceof byte[] bytes ? bytes.clone() : messageId;
            sender.offer(new Stamp(kind, id, eventTimeUs, clock.wallUs(), cut(reason)));
        } catch (RuntimeException | Error error) {
            sender.loseCount();
        }
    }

    private static String cut(String reason) {
        return reason == null || reason.length() <= Limits.MAX_REASON_CHARS
            ? reason : reason.substring(0, Limits.MAX_REASON_CHARS);
    }

    /**
     * Count a message of now that passed and could not be stamped: what is missing in this window is unknown, and never
     * lost.
     *
     * @param cause why, at most 64 characters
     */
    public void missed(String cause) {
        missed(cause, clock.wallUs());
    }

    /** Count a message that could not be stamped, in the window of its event time. */
    public void missed(String cause, long eventTimeUs) {
        if (sender != null && !isClosed) {
            sender.miss(eventTimeUs, clock.wallUs(), cause);
        }
    }

    /**
     * Send all stamps now, and wait for the transport.
     *
     * @return whether all stamps so far are where a monitor finds them; true without a sink
     */
    public boolean flush(long patienceMs) {
        try {
            return sender == null || isClosed || sender.settle(patienceMs);
        } catch (RuntimeException | Error error) {
            LOG.warn("a probe failed", error);
            return false;
        }
    }

    /** Number of the observations that this probe had to drop. */
    public long droppedTotal() {
        return sender == null ? 0 : sender.droppedTotal();
    }

    /** Send the remaining stamps and a bye: nothing more will be stamped. It gives up after two seconds. */
    @Override
    public void close() {
        close(true);
    }

    /** End without a bye: the service goes on without its probe, and its later messages are unknown, and never lost. */
    public void abandon() {
        close(false);
    }

    private void close(boolean bye) {
        if (sender == null || isClosed) {
            return;
        }
        // Read before the queue closes: stamps between the two are not covered by the bye.
        long untilUs = clock.wallUs();
        isClosed = true;
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (IllegalStateException error) {
            LOG.debug("the process ends");
        }
        try {
            sender.close(bye, untilUs);
        } catch (RuntimeException | Error error) {
            LOG.warn("a probe could not end well", error);
        }
    }

    /** Send what waits as the process ends; other threads may stamp still, so that there is no bye. */
    private void flushAtExit() {
        flush(Sender.CLOSE_MS);
    }
}
