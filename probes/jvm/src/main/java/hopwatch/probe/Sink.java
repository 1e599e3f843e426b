package hopwatch.probe;

import java.util.List;

/** Transport of records, behind a narrow interface; one thread at a time uses it. */
interface Sink extends AutoCloseable {
    /** Accept a record; false if the sink refuses it, and then keeps nothing of it. */
    boolean send(SentRecord sent);

    /** Return, once, the accepted records whose delivery has failed for good. */
    List<SentRecord> takeFailed();

    /** Do periodic work, such as closing a segment. */
    void tick();

    /** Make all accepted records durable and visible to a monitor; false if some are not within this time. */
    boolean settle(long patienceMs);

    /** Settle within two seconds, as far as possible, and release all resources. */
    @Override
    void close();
}
