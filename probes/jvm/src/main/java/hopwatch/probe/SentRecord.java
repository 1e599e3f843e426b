package hopwatch.probe;

import java.util.List;

/** Record as bytes, with what counts as dropped if it cannot be delivered. */
record SentRecord(byte[] bytes, long windowStartMs, int count, List<Drop> drops) {}
