package hopwatch.probe;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Drops of an instance that are not reported yet, by window and cause, in bounded memory, and the hole that drops need
 * which cannot be counted. All threads may call it.
 */
final class DropLedger {
    /** Pairs of window and cause that are counted separately. */
    static final int MAX_COUNTED = 10_000;
    /** Drops of one window and cause count at most this many. */
    static final long MAX_DROPPED = 1L << 53;
    /** Length of a hole for drops of unknown windows: as far as windows may be ahead of the clock. */
    static final long HOLE_US = 300_000_000;
    static final String NO_ROOM = "too many windows";

    private record Key(long windowStartMs, String cause) {}

    private final Clock clock;
    private final Map<Key, Long> counts = new LinkedHashMap<>();
    /** The last moment that is completed, at first the start of the instance. */
    private long throughUs;
    private long holeUntilUs;
    private boolean hasLostCount;
    private long total;

    DropLedger(long epochUs, Clock clock) {
        throughUs = epochUs;
        this.clock = clock;
    }

    /** Note the last moment that is completed: a hole begins there. */
    synchronized void complete(long momentUs) {
        throughUs = momentUs;
    }

    /** Count observations that will never be sent. */
    synchronized void drop(long windowStartMs, String cause, long count) {
        total += EventTimes.POSSIBLE_WINDOW.equals(cause) ? 0 : count;
        add(windowStartMs, cause, count);
    }

    /** Count drops whose report was lost. */
    synchronized void reportAgain(List<Drop> drops) {
        drops.forEach(drop -> add(drop.windowStartMs(), drop.cause(), drop.count()));
    }

    private void add(long windowStartMs, String cause, long count) {
        Key key = new Key(windowStartMs, cause);
        if (!counts.containsKey(key) && counts.size() >= MAX_COUNTED) {
            key = new Key(Limits.windowStartMs(throughUs), NO_ROOM);
            hasLostCount = true;
        }
        counts.merge(key, count, (before, more) -> Math.min(before + more, MAX_DROPPED));
    }

    /** Ask for a hole: observations of unknown windows were dropped and not counted. */
    synchronized void loseCount() {
        hasLostCount = true;
    }

    /** The end of the hole that the books need; it begins at the last completed moment. */
    synchronized long findHoleEndUs() {
        if (hasLostCount) {
            holeUntilUs = Math.max(throughUs, clock.wallUs()) + HOLE_US;
            hasLostCount = false;
        }
        return holeUntilUs;
    }

    /** The drops for the next record: as many as it may carry. */
    synchronized List<Drop> nextDrops() {
        List<Drop> next = new ArrayList<>();
        for (Map.Entry<Key, Long> entry : counts.entrySet()) {
            if (next.size() == Limits.MAX_DROPS) {
                break;
            }
            next.add(new Drop(entry.getKey().windowStartMs(), entry.getValue(), entry.getKey().cause()));
        }
        next.sort(Comparator.comparingLong(Drop::windowStartMs).thenComparing(Drop::cause));
        return next;
    }

    /** The number of pairs of window and cause that are not reported. */
    synchronized int size() {
        return counts.size();
    }

    /** Subtract drops that were reported. */
    synchronized void remove(List<Drop> told) {
        for (Drop drop : told) {
            counts.computeIfPresent(new Key(drop.windowStartMs(), drop.cause()),
                (key, count) -> count > drop.count() ? count - drop.count() : null);
        }
    }

    /** The number of all drops, reported or not. */
    synchronized long total() {
        return total;
    }
}
