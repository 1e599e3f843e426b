package hopwatch.probe;

import java.util.HashSet;
import java.util.Set;

/** Causes that were logged, in bounded memory: each is logged once. */
public final class OncePerCause {
    private static final int MAX_CAUSES = 1_000;

    private final Set<String> causes = new HashSet<>();

    /** Make a set without causes. */
    public OncePerCause() {}

    /** Return whether a cause is new, and note it. */
    public synchronized boolean isNew(String cause) {
        return causes.size() < MAX_CAUSES && causes.add(cause);
    }
}
