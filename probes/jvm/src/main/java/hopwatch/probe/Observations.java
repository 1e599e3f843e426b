package hopwatch.probe;

import java.util.List;

/** Observations of one window and one kind of id, packed as the fields of the wire are. */
record Observations(
        long windowStartMs,
        int count,
        byte[] messageIds,
        byte[] eventOffsetUs,
        byte[] lagInUs,
        byte[] lagOutUs,
        byte[] outcome,
        byte[] reason,
        List<String> reasons,
        MessageId.Kind idKind,
        byte[] idTexts,
        byte[] idTextEnds) {
    private static final byte[] EMPTY = {};

    /** No observations, as in a heartbeat; its window is the minute in which it is sent. */
    static Observations none(long sentAtUs) {
        return new Observations(Limits.windowStartMs(sentAtUs), 0, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, List.of(),
            MessageId.Kind.BYTES, EMPTY, EMPTY);
    }
}
