package hopwatch.probe;

import java.util.HexFormat;
import java.util.List;

/** Record of the wire, version 2: a batch of observations of one window, a heartbeat, or a bye. */
record Batch(
        Instance instance,
        long seq,
        Kind kind,
        long sentAtUs,
        long completeThroughUs,
        Observations observations,
        List<Drop> drops) {
    /** Kind of a record, in the order of the wire. */
    enum Kind { OBSERVATIONS, HEARTBEAT, BYE }

    /** Marker byte, and fingerprint of the schema. */
    private static final byte[] PREFIX =
        HexFormat.of().parseHex("81644b1dd5485e458e98e1dd30fcf33cfa31719c9023cbd25358c7638d6721d9a5");
    private static final byte[] NOT_SENT = {};

    /**
     * Encode the record.
     *
     * @throws IllegalStateException it is larger than a record may be
     */
    byte[] encode() {
        AvroWriter out = new AvroWriter();
        out.writeRaw(PREFIX);
        out.writeText(instance.probe());
        out.writeLong(instance.epochUs());
        out.writeLong(seq);
        out.writeLong(kind.ordinal());
        out.writeText(instance.stream());
        out.writeText(instance.node());
        out.writeLong(observations.windowStartMs());
        out.writeLong(sentAtUs);
        out.writeLong(completeThroughUs);
        out.writeLong(observations.count());
        out.writeBytes(observations.messageIds());
        out.writeBytes(observations.eventOffsetUs());
        out.writeBytes(observations.lagInUs());
        out.writeBytes(observations.lagOutUs());
        out.writeBytes(observations.outcome());
        out.writeBytes(observations.reason());
        out.writeItems(observations.reasons(), out::writeText);
        out.writeItems(drops, drop -> {
            out.writeLong(drop.windowStartMs());
            out.writeLong(drop.count());
            out.writeText(drop.cause());
        });
        out.writeItems(instance.labels().entrySet(), label -> {
            out.writeText(label.getKey());
            out.writeText(label.getValue());
        });
        out.writeLong(observations.idKind().ordinal());
        out.writeBytes(observations.idTexts());
        out.writeBytes(observations.idTextEnds());
        // Until when messages wait, numbers in a source, counted messages: what this probe does not stamp.
        out.writeBytes(NOT_SENT);
        out.writeBytes(NOT_SENT);
        out.writeItems(List.of(), item -> {});
        byte[] record = out.toByteArray();
        if (record.length > Limits.MAX_RECORD_BYTES) {
            throw new IllegalStateException(
                "a record has at most " + Limits.MAX_RECORD_BYTES + " bytes, got " + record.length);
        }
        return record;
    }
}
