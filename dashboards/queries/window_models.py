"""Result types of the window query: frozen values, moments in µs since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hopwatch.dashboards.queries.models import Graph
from hopwatch.monitor.markers import Marker
from hopwatch.monitor.results import LabelCounts, Revision, SecondCounts, SpanTimes, WindowResult


@dataclass(frozen=True, slots=True)
class WindowHole:
    """Gaps of a probe instance in a window that it reports to.

    ``missing`` are its batches that never came and may belong to the window, ``drops`` the observations that it had to
    drop, by cause, ``told_through_us`` the moment up to which it told all if that is before the window's horizon, else
    None. ``has_set_aside`` says that some of its batches of the window came too late or were implausible.
    """

    node: str
    probe: str
    epoch_us: int
    missing: int
    drops: Mapping[str, int]
    complete_through_us: int | None
    has_set_aside: bool


@dataclass(frozen=True, slots=True)
class AgedOutRecords:
    """Records of a partition, both ends included, that had aged out of the topic before they were read."""

    partition: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class NodeLostIds:
    """Number of stored lost ids of a node; for the requested node also the ids, each with its text as it was given."""

    node: str
    count: int
    ids: tuple[tuple[bytes, str], ...] = ()


@dataclass(frozen=True, slots=True)
class WindowDetail:
    """All of one minute. ``before_us`` and ``after_us`` start the windows beside it, None where there is none.

    ``holes`` are those of at most so many probe instances as are shown, ``holed`` is how many there are; ``is_live``
    says whether anything can still change the window.
    """

    result: WindowResult
    graph: Graph
    previous_us: int | None
    next_us: int | None
    is_live: bool
    lost_ids: tuple[NodeLostIds, ...]
    revisions: tuple[Revision, ...]
    holes: tuple[WindowHole, ...]
    hole_count: int
    aged_out: tuple[AgedOutRecords, ...]
    labels: Mapping[str, tuple[LabelCounts, ...]]
    """Counts by label of each node that has any, in the pathway's order."""
    seconds: Mapping[str, SecondCounts]
    """Counts by second of each node that misses messages, in the pathway's order."""
    times: SpanTimes | None
    """Times on the path; None where nothing was timed."""
    markers: tuple[Marker, ...]
    """Markers of the stream and of all, in the minute, shortly before it, or behind it."""
