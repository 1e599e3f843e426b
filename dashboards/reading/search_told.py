"""What a search for one message has found: frozen values, moments in µs since 1970."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.dashboards.reading.told import Graph
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.lookup.search import LostMessage
from hopwatch.monitor.results import WindowResult


@dataclass(frozen=True, slots=True)
class Way:
    """How a stream's messages go, and a window in which the message is: None where the store has it no more.

    ``sides`` says what each node stamps, ``both``, ``in`` or ``out``. Stamps of the window are kept by the monitor
    until ``kept_until_us``, None where nobody knows: the stream is not configured, or the store was filled once.
    """

    graph: Graph
    sides: tuple[str, ...]
    window: WindowResult | None
    kept_until_us: int | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """What is kept of a message.

    ``looked_into`` of ``segments`` were searched for its stamps, the newest first; ``trouble`` is why the segments or
    the lost ids could not be searched. The search is of ``at_us``.
    """

    stamps: tuple[MessageStamp, ...] = ()
    lost: tuple[LostMessage, ...] = ()
    segments: int = 0
    looked_into: int = 0
    at_us: int = 0
    trouble: tuple[str, ...] = ()
