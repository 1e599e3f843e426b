package hopwatch.probe;

import java.util.Map;

/** Identity of one running probe on the wire: stream, node, name, start in µs since 1970, and labels. */
record Instance(String stream, String node, String probe, long epochUs, Map<String, String> labels) {
    /** The unique name of this instance. */
    String name() {
        return stream + "." + node + "." + probe + "." + epochUs;
    }
}
