"""Result types of a message search: frozen values, moments in µs since 1970."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.dashboards.queries.models import Graph
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.lookup.missing_messages import MissingMessage
from hopwatch.monitor.results import WindowResult


@dataclass(frozen=True, slots=True)
class MessagePath:
    """Pathway of a stream and the window of a message; None where the store has pruned it.

    ``sides`` says what each node stamps, ``both``, ``in`` or ``out``. Stamps of the window are kept by the monitor
    until ``kept_until_us``, None where that is unknown: the stream is not configured, or the store was filled once.
    """

    graph: Graph
    sides: tuple[str, ...]
    window: WindowResult | None
    kept_until_us: int | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of a search for a message.

    ``looked_into`` of ``segments`` were searched for its stamps, the newest first; ``trouble`` is why the segments or
    the lost ids could not be searched. The search is of ``at_us``.
    """

    stamps: tuple[MessageStamp, ...] = ()
    lost: tuple[MissingMessage, ...] = ()
    segments: int = 0
    searched_segments: int = 0
    searched_at_us: int = 0
    errors: tuple[str, ...] = ()
