package hopwatch.probe;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;

/** Packing of stamps into batches: at most 4,096 observations each, of one window and one kind of id. */
final class StampPacker {
    static final int BATCH_OBSERVATIONS = 4_096;
    /** Bytes of id texts per batch, at most; further ids have hashes only. */
    static final int BATCH_TEXT_BYTES = 512 * 1_024;
    static final String BAD_MESSAGE_ID = "bad message id";
    private static final byte[] ABSENT = {};

    /** Stamp with its id in wire format, moved behind what is completed. */
    private record Row(Stamp stamp, MessageId id, long atUs) {
        long windowStartMs() {
            return Limits.windowStartMs(stamp.eventUs());
        }
    }

    private StampPacker() {}

    /**
     * Pack stamps, and count those that are refused.
     *
     * @param notBeforeUs the moment that is completed: stamps of then or before are moved just behind it, which is still
     *     within their calls
     */
    static List<Observations> pack(List<Stamp> stamps, long notBeforeUs, DropLedger ledger) {
        List<Row> rows = new ArrayList<>(stamps.size());
        // Numbers of reasons, in the order in which they were given.
        Map<String, Integer> reasons = new LinkedHashMap<>();
        for (Stamp stamp : stamps) {
            if (stamp.reason() != null && !stamp.reason().isEmpty()) {
                reasons.putIfAbsent(stamp.reason(), reasons.size());
            }
            if (!EventTimes.isGood(stamp.eventUs(), stamp.atUs())) {
                EventTimes.refuse(stamp.eventUs(), stamp.atUs(), EventTimes.IMPLAUSIBLE, ledger);
                continue;
            }
            try {
                rows.add(new Row(stamp, MessageId.of(stamp.messageId()), Math.max(stamp.atUs(), notBeforeUs + 1)));
            } catch (IllegalArgumentException error) {
                ledger.drop(Limits.windowStartMs(stamp.eventUs()), BAD_MESSAGE_ID, 1);
            }
        }
        rows.sort(Comparator.comparingLong(Row::windowStartMs).thenComparing(row -> row.id().kind()));
        List<Observations> packed = new ArrayList<>();
        int start = 0;
        while (start < rows.size()) {
            int end = start + 1;
            while (end < rows.size() && end - start < BATCH_OBSERVATIONS && isOfOneBatch(rows.get(start), rows.get(end))) {
                end++;
            }
            packed.add(packBatch(rows.subList(start, end), reasons));
            start = end;
        }
        return packed;
    }

    private static boolean isOfOneBatch(Row one, Row other) {
        return one.windowStartMs() == other.windowStartMs() && one.id().kind() == other.id().kind();
    }

    private static Observations packBatch(List<Row> rows, Map<String, Integer> reasons) {
        long windowStartMs = rows.get(0).windowStartMs();
        int count = rows.size();
        ByteBuffer ids = allocate(Limits.ID_BYTES * count);
        ByteBuffer offsets = allocate(4 * count);
        byte[] outcomes = new byte[count];
        boolean haveAllPassed = true;
        for (int place = 0; place < count; place++) {
            Row row = rows.get(place);
            ids.put(row.id().wire());
            offsets.putInt((int) (row.stamp().eventUs() - windowStartMs * 1_000));
            outcomes[place] = row.stamp().kind().outcome;
            haveAllPassed &= outcomes[place] == 0;
        }
        byte[] textEnds = ABSENT;
        ByteArrayOutputStream texts = new ByteArrayOutputStream();
        MessageId.Kind kind = rows.get(0).id().kind();
        if (kind == MessageId.Kind.TEXT) {
            textEnds = packTexts(rows, texts);
        }
        List<String> used = new ArrayList<>();
        byte[] reason = packReasons(rows, reasons, used);
        return new Observations(windowStartMs, count, ids.array(), offsets.array(),
            packLags(rows, row -> row.stamp().kind() == Stamp.Kind.DEPARTED ? Limits.NOT_STAMPED : lagUs(row)),
            packLags(rows, row -> row.stamp().kind() == Stamp.Kind.DEPARTED ? lagUs(row) : Limits.NOT_STAMPED),
            haveAllPassed ? ABSENT : outcomes, reason, used, kind, texts.toByteArray(), textEnds);
    }

    private static long lagUs(Row row) {
        return row.atUs() - row.stamp().eventUs();
    }

    private static byte[] packLags(List<Row> rows, ToLongFunction<Row> findLagUs) {
        ByteBuffer lags = allocate(8 * rows.size());
        boolean isAnyStamped = false;
        for (Row row : rows) {
            long lagUs = findLagUs.applyAsLong(row);
            isAnyStamped |= lagUs != Limits.NOT_STAMPED;
            lags.putLong(lagUs);
        }
        return isAnyStamped ? lags.array() : ABSENT;
    }

    /** Append the texts of ids, leaving out those beyond the limits, and return where each ends. */
    private static byte[] packTexts(List<Row> rows, ByteArrayOutputStream texts) {
        ByteBuffer ends = allocate(4 * rows.size());
        int wantedBytes = 0;
        for (Row row : rows) {
            byte[] text = row.id().text();
            if (text.length <= Limits.MAX_ID_TEXT_BYTES) {
                wantedBytes += text.length;
                if (wantedBytes <= BATCH_TEXT_BYTES) {
                    texts.write(text, 0, text.length);
                }
            }
            ends.putInt(texts.size());
        }
        return ends.array();
    }

    /** Add the reasons of a batch to {@code used}, and return the index of each message's; beyond the limit none. */
    private static byte[] packReasons(List<Row> rows, Map<String, Integer> reasons, List<String> used) {
        Map<Integer, String> found = new TreeMap<>();
        for (Row row : rows) {
            Integer number = row.stamp().reason() == null ? null : reasons.get(row.stamp().reason());
            if (number != null) {
                found.put(number, row.stamp().reason());
            }
        }
        found.values().stream().limit(Limits.MAX_REASONS).forEach(used::add);
        if (used.isEmpty()) {
            return ABSENT;
        }
        byte[] places = new byte[rows.size()];
        for (int place = 0; place < places.length; place++) {
            int index = used.indexOf(rows.get(place).stamp().reason());
            places[place] = (byte) (index < 0 ? Limits.NO_REASON : index);
        }
        return places;
    }

    private static ByteBuffer allocate(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
