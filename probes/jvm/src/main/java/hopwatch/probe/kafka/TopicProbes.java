package hopwatch.probe.kafka;

import hopwatch.probe.OncePerCause;
import hopwatch.probe.Probe;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Probes of one client, one for each topic: a topic is a stream, and the service is a node of it. */
final class TopicProbes implements AutoCloseable {
    /** Setting of the name of the service, the node of all its topics. */
    static final String SERVICE = "hopwatch.service";
    /** Setting of the sink. */
    static final String SINK = "hopwatch.sink";
    /** Prefix of settings of the client of the sink, which go before those of the client that is intercepted. */
    static final String SINK_PREFIX = "hopwatch.sink.";
    /** Topics that are stamped. Of further ones a probe is announced and ended: they are unknown. */
    static final int MAX_TOPICS = 64;
    /** Topics of which a probe is announced, at most. */
    static final int MAX_ANNOUNCED = 1_000;

    private static final String[] INHERITED = {"security.", "sasl.", "ssl."};
    private static final Logger LOG = LoggerFactory.getLogger("hopwatch.probe");

    private final Map<String, Probe> probes = new ConcurrentHashMap<>();
    private final OncePerCause logged = new OncePerCause();
    private final Map<String, Object> access = new HashMap<>();
    private String service;
    private String sink = "";

    /** Read the settings of a client; without a service or a sink nothing is stamped. */
    void configure(Map<String, ?> settings) {
        service = read(settings, SERVICE, "OTEL_SERVICE_NAME");
        sink = read(settings, SINK, Probe.SINK_VARIABLE);
        settings.forEach((name, value) -> {
            for (String prefix : INHERITED) {
                if (name.startsWith(prefix) && value != null) {
                    access.put(name, value);
                }
            }
        });
        settings.forEach((name, value) -> {
            if (name.startsWith(SINK_PREFIX) && value != null) {
                access.put(name.substring(SINK_PREFIX.length()), value);
            }
        });
        if (service.isEmpty() || sink.isEmpty()) {
            warn("no message is stamped: set " + SERVICE + " and " + SINK + " in the client's settings, or"
                + " OTEL_SERVICE_NAME and " + Probe.SINK_VARIABLE + " in the environment", null);
            sink = "";
        } else if (!Probe.isName(service)) {
            warn("no message is stamped: a service is 1 to 128 of the characters A-Za-z0-9._-, got " + service, null);
            sink = "";
        }
    }

    private static String read(Map<String, ?> settings, String name, String variable) {
        Object value = settings.get(name);
        String found = value == null ? System.getenv(variable) : value.toString();
        return found == null ? "" : found.strip();
    }

    /** Return whether messages are stamped. */
    boolean areOn() {
        return !sink.isEmpty();
    }

    /** Return the probe of a topic, started if need be; null where there are too many. */
    Probe find(String topic) {
        Probe found = probes.get(topic);
        return found == null ? startOnce(topic) : found;
    }

    private synchronized Probe startOnce(String topic) {
        Probe found = probes.get(topic);
        if (found != null || probes.size() >= MAX_ANNOUNCED) {
            return found;
        }
        Probe started = Probe.start(topic, service, sink, access);
        if (probes.size() >= MAX_TOPICS) {
            warn("messages of more than " + MAX_TOPICS + " topics are not stamped: of the others all is unknown", null);
            started.abandon();
        }
        probes.put(topic, started);
        return started;
    }

    /** Count a message of any topic that could not be stamped. */
    void miss(String cause) {
        probes.values().forEach(probe -> probe.missed(cause));
    }

    /** Log a cause once. */
    void warn(String told, Throwable error) {
        if (logged.isNew(told)) {
            LOG.warn(told, error);
        }
    }

    @Override
    public void close() {
        probes.values().parallelStream().forEach(Probe::close);
        probes.clear();
        sink = "";
    }
}
