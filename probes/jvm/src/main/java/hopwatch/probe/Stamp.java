package hopwatch.probe;

/** One call for one message: its kind, id, event time and moment (µs since 1970), with a reason if it ends here. */
record Stamp(Kind kind, Object messageId, long eventUs, long atUs, String reason) {
    /** Kind of a stamp. */
    enum Kind {
        ARRIVED(0),
        DEPARTED(0),
        FILTERED(1),
        REJECTED(2);

        /** Outcome on the wire: 0 passed, 1 filtered, 2 rejected. */
        final byte outcome;

        Kind(int outcome) {
            this.outcome = (byte) outcome;
        }
    }
}
