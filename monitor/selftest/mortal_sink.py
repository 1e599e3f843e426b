"""Sink of a probe that dies: from then on it takes records, and sends none."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hopwatch.probes.sinks import Sink


class MortalSink:
    """Sink in front of another one; what is sent to it once it is dead is gone, as from a process that was killed."""

    def __init__(self, sink: Sink) -> None:
        """Set the sink of the transport."""
        self._sink, self._is_dead, self._lock = sink, False, threading.RLock()

    def kill(self) -> None:
        """Keep what was sent before, and let all that comes go."""
        with self._lock:
            self._is_dead = True
            self._sink.close()

    def send(self, record: bytes) -> bool:
        """Send a record; a dead sink takes it and forgets it."""
        with self._lock:
            return self._is_dead or self._sink.send(record)

    def failed(self) -> Sequence[bytes]:
        """Return, once, the accepted records whose delivery has failed; none of a dead sink."""
        with self._lock:
            return () if self._is_dead else self._sink.failed()

    def tick(self) -> None:
        """Do the periodic work of the sink."""
        with self._lock:
            if not self._is_dead:
                self._sink.tick()

    def settle(self, patience_s: float) -> bool:
        """Make all accepted records durable; True of a dead sink."""
        with self._lock:
            return self._is_dead or self._sink.settle(patience_s)

    def close(self, patience_s: float = 0.0) -> None:
        """Close the sink, unless it is dead and closed already."""
        with self._lock:
            if not self._is_dead:
                self._sink.close(patience_s)
