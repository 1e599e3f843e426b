package hopwatch.probe;

import java.time.Instant;

/** Clock of a probe; tests have their own. */
interface Clock {
    /** The time of day, in µs since 1970. */
    long wallUs();

    /** A time that only grows, in ns. */
    long monotonicNs();

    /** The clock of this machine. */
    Clock SYSTEM = new Clock() {
        @Override
        public long wallUs() {
            Instant now = Instant.now();
            return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
        }

        @Override
        public long monotonicNs() {
            return System.nanoTime();
        }
    };
}
