"""A sink that waits: a tap can stop reading, as a service cannot, and so need not drop what its sink will not take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.probes.sinks import Sink
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.context import RunContext

RETRY_S: Final = 0.5
"""How often a record that was not taken is offered again."""


class BlockingSink:
    """Offers every record until it is taken or the tap is to stop; knows whether all that it took is durable."""

    def __init__(self, sink: Sink, around: RunContext) -> None:
        """Take the sink."""
        self._sink, self._context = sink, around
        self._is_waiting = False
        self.is_settled = True
        self.has_lost = False
        """Whether something that was stamped is gone for good, so that only a restart stamps it again."""

    def send(self, record: bytes) -> bool:
        """Give a record to the sink, however long that takes; False when the tap is to stop before."""
        while not self._sink.send(record):
            if not self._is_waiting:
                self._context.report("the sink takes nothing: reading no further until it does")
            self._is_waiting = True
            if self._context.stop.wait(RETRY_S):
                # One more, because the wait may have ended early.
                is_taken = self._sink.send(record)
                self.has_lost |= not is_taken
                return is_taken
        if self._is_waiting:
            self._context.report("the sink takes records again")
        self._is_waiting = False
        return True

    def failed(self) -> Sequence[bytes]:
        """Return what the transport could not keep: it is gone, though the sink had taken it."""
        failed = self._sink.failed()
        self.has_lost |= bool(failed)
        return failed

    def tick(self) -> None:
        """Let the sink do what is due."""
        self._sink.tick()

    def settle(self, patience_s: float) -> bool:
        """Let the sink settle; a spool that could not has lost it."""
        self.is_settled = self._sink.settle(patience_s)
        if not self.is_settled and isinstance(self._sink, SpoolSink):
            self.has_lost = True
        return self.is_settled

    def close(self, patience_s: float = 0.0) -> None:
        """Close the sink."""
        self._sink.close(patience_s)
