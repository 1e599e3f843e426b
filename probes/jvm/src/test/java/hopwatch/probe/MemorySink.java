package hopwatch.probe;

import java.util.ArrayList;
import java.util.List;

/** Sink that keeps every record, refuses it or throws, as a test says; accepted records may fail later. */
final class MemorySink implements Sink {
    final List<SentRecord> records = new ArrayList<>();
    String how = "accepts";
    private final List<SentRecord> failing = new ArrayList<>();

    @Override
    public boolean send(SentRecord sent) {
        if (how.equals("raises")) {
            throw new IllegalStateException("out of order");
        }
        return how.equals("accepts") && records.add(sent);
    }

    /** Let the last records fail that were accepted. */
    void fail(int count) {
        failing.addAll(records.subList(records.size() - count, records.size()));
    }

    @Override
    public List<SentRecord> takeFailed() {
        List<SentRecord> taken = List.copyOf(failing);
        failing.clear();
        return taken;
    }

    @Override
    public void tick() {}

    @Override
    public boolean settle(long patienceMs) {
        return true;
    }

    @Override
    public void close() {}
}
