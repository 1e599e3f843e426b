package hopwatch.probe;

/** Limits of the wire format. */
final class Limits {
    static final int MAX_RECORD_BYTES = 4 * 1024 * 1024;
    static final int MAX_REASONS = 32;
    static final int MAX_REASON_CHARS = 64;
    static final int MAX_DROPS = 1_024;
    static final int MAX_CAUSE_CHARS = 64;
    static final int MAX_NAME_CHARS = 128;
    static final int MAX_ID_TEXT_BYTES = 1_024;
    static final int ID_BYTES = 16;
    static final long WINDOW_MS = 60_000;
    static final long WINDOW_US = 60_000_000;
    /** Lag of a stamp that is absent. */
    static final long NOT_STAMPED = Long.MIN_VALUE;
    /** Index of the reason of a message without one. */
    static final int NO_REASON = 255;

    private Limits() {}

    /** Return whether a text can be the name of a stream or a node: 1 to 128 of the characters A-Za-z0-9._-. */
    static boolean isName(String text) {
        if (text == null || text.isEmpty() || text.length() > MAX_NAME_CHARS) {
            return false;
        }
        for (int place = 0; place < text.length(); place++) {
            char one = text.charAt(place);
            boolean isLetter = one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z';
            if (!isLetter && !(one >= '0' && one <= '9') && one != '.' && one != '_' && one != '-') {
                return false;
            }
        }
        return true;
    }

    /** Return the start of the window of a moment, in ms since 1970. */
    static long windowStartMs(long momentUs) {
        return Math.floorDiv(momentUs, WINDOW_US) * WINDOW_MS;
    }
}
