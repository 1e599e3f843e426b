package hopwatch.probe;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sender of one probe instance: turns queued stamps into batches, and sends them, heartbeats and a final bye, off the
 * host's threads.
 *
 * <p>A number is used up only when the sink accepts the record. One is skipped where drops are of more windows than can
 * be counted, cannot be counted at all, or a sink threw instead of refusing: the account has a hole then.
 */
final class Sender {
    /** Stamps that wait at most. */
    static final int MAX_STAMPS = 200_000;
    /** Texts of at most so many characters cost no more than the stamp itself, and are not weighed. */
    static final int MAX_LIGHT_CHARS = 64;
    /** Characters that all longer texts may take together. */
    static final long MAX_HEAVY_CHARS = 16 * 1024 * 1024;
    /** Time that a start waits for the transport to take the hello. */
    static final long ANNOUNCE_WITHIN_MS = 1_000;
    static final long CLOSE_MS = 2_000;
    static final String QUEUE_FULL = "queue full";
    static final String SINK_REFUSED = "sink refused";
    static final String UNSENDABLE = "unsendable";
    static final String UNDELIVERED = "undelivered";

    private static final long FLUSH_EVERY_NS = 2_000_000_000L;
    /** Fewer stamps than this are not worth a record of their own every two seconds. */
    private static final int FEW_STAMPS = 32;
    private static final long FEW_EVERY_NS = 5_000_000_000L;
    private static final long HEARTBEAT_EVERY_NS = 10_000_000_000L;
    private static final long TICK_MS = 500;
    /** Stamps that do not wait for the next tick. */
    private static final int WAKING_STAMPS = MAX_STAMPS / 4;
    /** Stamps that are packed at once. */
    private static final int PACK_STAMPS = 2 * StampPacker.BATCH_OBSERVATIONS;
    private static final Logger LOG = LoggerFactory.getLogger("hopwatch.probe");

    private final Instance instance;
    private final Sink sink;
    private final Clock clock;
    private final DropLedger ledger;
    private final LinkedBlockingQueue<Stamp> queue = new LinkedBlockingQueue<>(MAX_STAMPS);
    private final AtomicLong heavyChars = new AtomicLong();
    private final Deque<Observations> packed = new ArrayDeque<>();
    private final OncePerCause logged = new OncePerCause();
    private final CountDownLatch hasTried = new CountDownLatch(1);
    private final Object waking = new Object();
    private Thread thread;
    private long seq;
    private long completeThroughUs;
    private long flushedNs;
    private long sentNs;
    private boolean owesHello = true;
    private volatile boolean isAnnounced;
    private volatile boolean isEnded;
    /** Last record: a bye only if the host has closed the probe, whatever else ends its thread. */
    private volatile Batch.Kind lastKind = Batch.Kind.HEARTBEAT;
    private volatile long untilUs = Long.MAX_VALUE;
    private boolean isWoken;

    Sender(Instance instance, Sink sink, Clock clock) {
        this.instance = instance;
        this.sink = sink;
        this.clock = clock;
        ledger = new DropLedger(instance.epochUs(), clock);
        completeThroughUs = instance.epochUs();
        flushedNs = sentNs = clock.monotonicNs();
    }

    /** Start the thread, and wait a second at most until the transport has the hello. */
    void start() {
        thread = new Thread(this::run, "hopwatch-probe");
        thread.setDaemon(true);
        thread.start();
        try {
            if (!hasTried.await(ANNOUNCE_WITHIN_MS, TimeUnit.MILLISECONDS) || !isAnnounced) {
                LOG.warn(describe() + " could not announce itself within a second: killed before it can, it was"
                    + " never there");
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** Queue a stamp, or count it as dropped where there is no room. */
    void offer(Stamp stamp) {
        int heavy = weigh(stamp);
        boolean hasRoom = heavy == 0 || heavyChars.addAndGet(heavy) <= MAX_HEAVY_CHARS;
        if (hasRoom && queue.offer(stamp)) {
            if (queue.size() == WAKING_STAMPS) {
                wake();
            }
            return;
        }
        heavyChars.addAndGet(-heavy);
        EventTimes.refuse(stamp.eventUs(), stamp.atUs(), QUEUE_FULL, ledger);
    }

    /** Count a message that passed and could not be stamped, in the window of its event time. */
    void miss(long eventUs, long atUs, String cause) {
        String told = cause.substring(0, Math.min(cause.length(), Limits.MAX_CAUSE_CHARS));
        EventTimes.refuse(eventUs, atUs, told, ledger);
    }

    /** Note a stamp that could not even be counted. */
    void loseCount() {
        ledger.loseCount();
    }

    private static int weigh(Stamp stamp) {
        return stamp.messageId() instanceof String text && text.length() > MAX_LIGHT_CHARS ? text.length() : 0;
    }

    /** Number of all observations that were dropped. */
    long droppedTotal() {
        return ledger.total();
    }

    /** Send all stamps now, and wait for the transport; return whether it has all, with none dropped meanwhile. */
    synchronized boolean settle(long patienceMs) {
        long before = ledger.total();
        flush(null);
        boolean isSettled = sink.settle(patienceMs);
        countFailed();
        return isSettled && ledger.total() == before && !owesHello;
    }

    /**
     * Send what is left and a bye, or no bye, and close the sink; give up after two seconds.
     *
     * @param untilUs no later moment is completed: later stamps are not sent
     */
    void close(boolean bye, long untilUs) {
        this.untilUs = untilUs;
        lastKind = bye ? Batch.Kind.BYE : Batch.Kind.HEARTBEAT;
        isEnded = true;
        wake();
        Thread running = thread;
        if (running == null) {
            finish();
            return;
        }
        try {
            running.join(CLOSE_MS);
        } catch (InterruptedException error) {
            // The thread goes on by itself.
            Thread.currentThread().interrupt();
            return;
        }
        if (running.isAlive()) {
            LOG.warn(describe() + " gave up after two seconds: its sink is busy, " + queue.size() + " stamps are unsent");
        }
    }

    private synchronized void finish() {
        try {
            flush(lastKind);
        } finally {
            sink.close();
        }
    }

    private void run() {
        try {
            announceFirst();
        } catch (RuntimeException | Error error) {
            warn("could not announce itself", error);
        } finally {
            hasTried.countDown();
        }
        while (!isEnded) {
            try {
                await();
                step();
            } catch (InterruptedException error) {
                isEnded = true;
            } catch (RuntimeException | Error error) {
                warn("could not send", error);
            }
        }
        try {
            finish();
        } catch (RuntimeException | Error error) {
            warn("could not end well", error);
        }
    }

    private synchronized void announceFirst() {
        isAnnounced = announce() && sink.settle(ANNOUNCE_WITHIN_MS);
    }

    private void await() throws InterruptedException {
        synchronized (waking) {
            if (!isWoken) {
                waking.wait(TICK_MS);
            }
            isWoken = false;
        }
    }

    private void wake() {
        synchronized (waking) {
            isWoken = true;
            waking.notifyAll();
        }
    }

    /** Do all due work: flush, send a heartbeat, and run the sink's periodic work. */
    synchronized void step() {
        long nowNs = clock.monotonicNs();
        long everyNs = queue.size() < FEW_STAMPS ? FEW_EVERY_NS : FLUSH_EVERY_NS;
        if (nowNs - sentNs >= HEARTBEAT_EVERY_NS) {
            flush(Batch.Kind.HEARTBEAT);
        } else if (queue.size() >= StampPacker.BATCH_OBSERVATIONS || nowNs - flushedNs >= everyNs) {
            flush(null);
        }
        sink.tick();
        countFailed();
    }

    /** Send the hello, unless it is sent; return whether it is. */
    private boolean announce() {
        if (owesHello && send(build(Batch.Kind.HEARTBEAT, completeThroughUs, List.of())) == null) {
            owesHello = false;
        }
        return !owesHello;
    }

    /** Send all waiting stamps and drops; with {@code closing} a bye, or a heartbeat if no other record said as much. */
    synchronized void flush(Batch.Kind closing) {
        flushedNs = clock.monotonicNs();
        if (!announce() && !isEnded) {
            return;
        }
        // Read the moment before the queue is packed: later stamps are moved behind it.
        long momentUs = findCompleteUs();
        packQueue();
        boolean hasToldAll = sendPacked(momentUs);
        if (closing == Batch.Kind.BYE || (closing != null || ledger.size() > 0) && !hasToldAll) {
            // While a hole lasts, a bye would complete windows ahead of it.
            boolean isBye = closing == Batch.Kind.BYE && momentUs >= ledger.findHoleEndUs();
            sendEmpty(isBye ? Batch.Kind.BYE : Batch.Kind.HEARTBEAT, momentUs);
        }
    }

    private void packQueue() {
        int waiting = queue.size();
        List<Stamp> taken = new ArrayList<>();
        while (waiting > 0) {
            taken.clear();
            waiting -= queue.drainTo(taken, Math.min(waiting, PACK_STAMPS));
            if (taken.isEmpty()) {
                return;
            }
            try {
                packed.addAll(StampPacker.pack(taken, completeThroughUs, ledger));
            } catch (RuntimeException | Error error) {
                // Such as of memory: nobody knows which of the stamps are packed.
                ledger.loseCount();
                throw error;
            } finally {
                taken.forEach(stamp -> heavyChars.addAndGet(-weigh(stamp)));
            }
        }
    }

    /** Send all batches; the last one carries drops, and the moment if it reports all drops; true if it was accepted. */
    private boolean sendPacked(long momentUs) {
        while (packed.size() > 1) {
            sendFirst(completeThroughUs, List.of());
        }
        if (packed.isEmpty()) {
            return false;
        }
        List<Drop> told = ledger.nextDrops();
        boolean isAll = told.size() == ledger.size();
        return sendFirst(isAll ? momentUs : completeThroughUs, told) && isAll;
    }

    private boolean sendFirst(long throughUs, List<Drop> told) {
        Observations first = packed.peek();
        String cause = send(build(throughUs, told, first));
        if (cause != null) {
            ledger.drop(first.windowStartMs(), cause, first.count());
        }
        packed.remove();
        return cause == null;
    }

    private void sendEmpty(Batch.Kind kind, long momentUs) {
        boolean isAll = false;
        while (!isAll) {
            List<Drop> told = ledger.nextDrops();
            isAll = told.size() == ledger.size();
            Batch batch = build(isAll ? kind : Batch.Kind.HEARTBEAT, isAll ? momentUs : completeThroughUs, told);
            if (send(batch) != null) {
                return;
            }
        }
    }

    private Batch build(Batch.Kind kind, long throughUs, List<Drop> told) {
        long nowUs = clock.wallUs();
        return new Batch(instance, nextSeq(throughUs), kind, nowUs, throughUs, Observations.none(nowUs), told);
    }

    private Batch build(long throughUs, List<Drop> told, Observations observations) {
        return new Batch(instance, nextSeq(throughUs), Batch.Kind.OBSERVATIONS, clock.wallUs(), throughUs, observations,
            told);
    }

    private long nextSeq(long throughUs) {
        return completeThroughUs < Math.min(throughUs, ledger.findHoleEndUs()) ? seq + 1 : seq;
    }

    /** Send a record, and advance once the sink accepts it; return null, or the cause of a refusal. */
    private String send(Batch batch) {
        batch.drops().forEach(drop -> warn("drops observations: " + drop.cause(), null));
        long atNs = clock.monotonicNs();
        SentRecord sent;
        try {
            sent = new SentRecord(batch.encode(), batch.observations().windowStartMs(), batch.observations().count(),
                batch.drops());
        } catch (IllegalStateException error) {
            warn("made a record that breaks the wire", error);
            return UNSENDABLE;
        }
        try {
            if (!sink.send(sent)) {
                return SINK_REFUSED;
            }
        } catch (RuntimeException | Error error) {
            // The sink may have taken the record: use its number up, so that no other record counts as its copy.
            seq = batch.seq() + 1;
            warn("has a sink that failed", error);
            return SINK_REFUSED;
        }
        seq = batch.seq() + 1;
        completeThroughUs = batch.completeThroughUs();
        sentNs = atNs;
        ledger.complete(completeThroughUs);
        ledger.remove(batch.drops());
        return null;
    }

    /** Count the observations of accepted records that failed later; their numbers make a hole. */
    private void countFailed() {
        for (SentRecord failed : sink.takeFailed()) {
            if (failed.count() > 0) {
                ledger.drop(failed.windowStartMs(), UNDELIVERED, failed.count());
            }
            ledger.reportAgain(failed.drops());
        }
    }

    /** Return the moment up to which the queue holds all stamps; while a hole lasts it may stand still. */
    private long findCompleteUs() {
        long beforeUs = completeThroughUs;
        long momentUs = Math.max(beforeUs, Math.min(clock.wallUs(), untilUs));
        return momentUs < Math.min(ledger.findHoleEndUs(), beforeUs + DropLedger.HOLE_US) ? beforeUs : momentUs;
    }

    private String describe() {
        return "a probe of " + instance.stream() + " at " + instance.node();
    }

    private void warn(String what, Throwable error) {
        if (logged.isNew(what)) {
            LOG.warn(describe() + " " + what, error);
        }
    }
}
