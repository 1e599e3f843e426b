"""Sink that blocks while its transport refuses records: a tap, unlike a service, can stop reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.probes.once_per_cause import OncePerCause
from hopwatch.probes.sinks import Sink, loses_unsettled
from hopwatch.probes.taps.context import RunContext

RETRY_S: Final = 0.5
"""Interval at which a refused record is sent again."""


class BlockingSink:
    """Sink that retries every record until it is accepted or the tap stops; tracks whether all are durable."""

    def __init__(self, sink: Sink, around: RunContext) -> None:
        """Wrap a sink."""
        self._sink, self._context = sink, around
        self._waiting = OncePerCause()
        self.is_settled = True
        self.has_lost = False
        """True if stamps are lost for good, so that only a restart stamps those messages again."""

    def send(self, record: bytes) -> bool:
        """Send a record, however long it takes; False if the tap stops before."""
        while not self._sink.send(record):
            if self._waiting.is_new():
                self._context.report("the sink takes nothing: reading no further until it does")
            if self._context.stop.wait(RETRY_S):
                # One more try, because the wait may have ended early.
                is_taken = self._sink.send(record)
                self.has_lost |= not is_taken
                return is_taken
        if self._waiting.rearm():
            self._context.report("the sink takes records again")
        return True

    def failed(self) -> Sequence[bytes]:
        """Return the accepted records that the transport has lost."""
        failed = self._sink.failed()
        self.has_lost |= bool(failed)
        return failed

    def tick(self) -> None:
        """Run the sink's periodic work."""
        self._sink.tick()

    def settle(self, patience_s: float) -> bool:
        """Settle the sink; a spool that cannot has lost records."""
        self.is_settled = self._sink.settle(patience_s)
        self.has_lost |= not self.is_settled and loses_unsettled(self._sink)
        return self.is_settled

    def close(self, patience_s: float = 0.0) -> None:
        """Close the sink."""
        self._sink.close(patience_s)
