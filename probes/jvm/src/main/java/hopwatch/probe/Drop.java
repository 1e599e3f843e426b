package hopwatch.probe;

/** Observations of a window (start in ms since 1970) that an instance had to drop. */
record Drop(long windowStartMs, long count, String cause) {}
