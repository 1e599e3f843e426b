package hopwatch.probe;

/** Clock that moves only when it is told to. */
final class ManualClock implements Clock {
    private long nowUs;

    ManualClock(long nowUs) {
        this.nowUs = nowUs;
    }

    @Override
    public long wallUs() {
        return nowUs;
    }

    @Override
    public long monotonicNs() {
        return nowUs * 1_000;
    }

    void advance(long us) {
        nowUs += us;
    }
}
