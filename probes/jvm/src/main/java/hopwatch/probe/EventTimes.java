package hopwatch.probe;

/** Checks of event times, µs since 1970: a wrong one is mostly in another unit, or of a wrong clock. */
final class EventTimes {
    /** First event time (in the year 2255) that is refused. */
    static final long MAX_EVENT_US = 1L << 53;
    /** Most by which an event time may be ahead of the clock. */
    static final long MAX_AHEAD_US = 300_000_000;
    /** Most by which an event time may be before its stamp. */
    static final long MAX_AGE_US = 86_400_000_000L;
    static final String BAD = "bad event time";
    static final String IMPLAUSIBLE = "implausible event time";
    /** Cause of an additional count, of the same stamp in the window that its event time may mean. */
    static final String POSSIBLE_WINDOW = "implausible event time, perhaps of this minute";

    private static final long SECONDS_BELOW = 100_000_000_000L;
    private static final long MILLISECONDS_BELOW = 100_000_000_000_000L;
    private static final long MICROSECONDS_BELOW = 100_000_000_000_000_000L;

    private EventTimes() {}

    /** Return whether a window can hold an event time, and the moment of its stamp is near it. */
    static boolean isGood(long eventUs, long atUs) {
        return isRepresentable(eventUs) && eventUs >= atUs - MAX_AGE_US && eventUs <= atUs + MAX_AHEAD_US;
    }

    /** Count a stamp that is refused for a cause: in its window, or where its event time is wrong in that of its moment. */
    static void refuse(long eventUs, long atUs, String cause, DropLedger ledger) {
        if (isGood(eventUs, atUs)) {
            ledger.drop(Limits.windowStartMs(eventUs), cause, 1);
            return;
        }
        ledger.drop(Limits.windowStartMs(atUs), isRepresentable(eventUs) ? IMPLAUSIBLE : BAD, 1);
        long perhapsUs = guessMomentUs(eventUs);
        boolean isOther = Limits.windowStartMs(perhapsUs) != Limits.windowStartMs(atUs);
        if (eventUs > 0 && isRepresentable(perhapsUs) && isOther) {
            ledger.drop(Limits.windowStartMs(perhapsUs), POSSIBLE_WINDOW, 1);
        }
    }

    private static boolean isRepresentable(long eventUs) {
        return eventUs >= 0 && eventUs < MAX_EVENT_US;
    }

    /** Guess the unit of an event time by its size, and return it in µs since 1970. */
    private static long guessMomentUs(long eventUs) {
        if (eventUs < SECONDS_BELOW) {
            return eventUs * 1_000_000;
        }
        if (eventUs < MILLISECONDS_BELOW) {
            return eventUs * 1_000;
        }
        return eventUs < MICROSECONDS_BELOW ? eventUs : eventUs / 1_000;
    }
}
