package hopwatch.probe;

import java.util.regex.Pattern;

/** Limits of the wire format. */
final class Limits {
    static final int MAX_RECORD_BYTES = 4 * 1024 * 1024;
    static final int MAX_REASONS = 32;
    static final int MAX_REASON_CHARS = 64;
    static final int MAX_DROPS = 1_024;
    static final int MAX_CAUSE_CHARS = 64;
    static final int MAX_NAME_CHARS = 128;
    static final int MAX_LABELS = 8;
    static final int MAX_LABEL_CHARS = 64;
    static final int MAX_ID_TEXT_BYTES = 1_024;
    static final int ID_BYTES = 16;
    static final long WINDOW_MS = 60_000;
    static final long WINDOW_US = 60_000_000;
    /** Lag of a stamp that is absent. */
    static final long NOT_STAMPED = Long.MIN_VALUE;
    /** Index of the reason of a message without one. */
    static final int NO_REASON = 255;
    /** Names of streams and nodes. */
    static final Pattern NAME = Pattern.compile("[A-Za-z0-9._-]{1,128}");

    private Limits() {}

    /** Return the start of the window of a moment, in ms since 1970. */
    static long windowStartMs(long momentUs) {
        return Math.floorDiv(momentUs, WINDOW_US) * WINDOW_MS;
    }
}
