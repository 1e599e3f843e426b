"""Thread that looks at the offsets behind a gate once a second, for the throttle of one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, Protocol

from hopwatch.gate.throttle.group_offsets import OffsetsUnknownError
from hopwatch.gate.throttle.queue_wait import GroupOffsets
from hopwatch.gate.throttle.stream_throttle import StreamThrottle
from hopwatch.probes.clock import Clock

LOOK_EVERY_S: Final = 1.0


class OffsetsReader(Protocol):
    """Reader of the offsets of a group."""

    def read(self, now_s: float) -> GroupOffsets:
        """Return them now.

        Raises:
            OffsetsUnknownError: they are not known.
        """

    def close(self) -> None:
        """Close the connections."""


@contextmanager
def watch_offsets(
    throttle: StreamThrottle, reader: OffsetsReader, clock: Clock, report: Callable[[str], object]
) -> Iterator[None]:
    """Tell a throttle of the offsets while the block runs; report what it decides, and once that they are not known."""
    over = Event()

    def look() -> None:
        unknown = ""
        while not over.wait(LOOK_EVERY_S):
            offsets, why = _read_offsets(reader, clock)
            if why and not unknown:
                report(f"{throttle.stream}: the throttle does not know the backlog: {why}")
            unknown = why
            if said := throttle.observe(offsets):
                report(said)
        reader.close()

    thread = Thread(target=look, name=f"hopwatch-throttle-{throttle.stream}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _read_offsets(reader: OffsetsReader, clock: Clock) -> tuple[GroupOffsets | None, str]:
    """Return the offsets, or None and why; a fault of our own is as good as brokers that are silent: it admits all."""
    try:
        return reader.read(clock.monotonic_ns() / 1e9), ""
    except OffsetsUnknownError as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001 - a thread that ended would leave its last limit for ever
        return None, f"a fault of Hopwatch's own: {type(error).__name__}"
