"""Sample of the messages of the last seconds, the same ones at all nodes; SEMANTICS, "Recent figures".

Of each node and second of arrival those messages are kept whose ids have the smallest hashes. All nodes hash alike, so
that the others keep most of what one of them keeps, in whatever batches it comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.stamp_sample import MAX_LAG_US
from hopwatch.monitor.results import RECENT_SPAN_S
from hopwatch.probes.contract.limits import NOT_STAMPED

MAX_SECOND_MESSAGES: Final = 64
"""Messages that are kept of a node and a second of arrival at most."""
MAX_EDGE_S: Final = 60
"""Time for which a message is kept, by arrival: what is on its way for longer has no recent time on an edge."""

_NOT_ASKED: Final = -1
"""Place of a node of a stream that is not asked for."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MARK_BITS: Final = 22
_MARK_SHIFT: Final = np.uint64(64 - _MARK_BITS)
"""Hashes of arrivals are marked by their first bits, so that most departures are left out before they are sorted."""

SIGHTINGS: Final = np.dtype(
    [
        ("node", "<u4"),
        ("second", "<i8"),
        ("key", "<u8"),
        ("lag_in_us", "<i8"),
        ("lag_out_us", "<i8"),
    ]
)
"""Observation of a message, by the hash of its id: the second in which its batch arrived, and its lags."""

StreamEdges = Mapping[str, Sequence[tuple[str, str]]]
"""Edges of the pathway of each stream, by the names of their nodes."""


class RecentMessages(NamedTuple):
    """Sampled messages of some nodes, which are (stream, node); ``sightings`` has the dtype SIGHTINGS."""

    nodes: tuple[tuple[str, str], ...]
    sightings: NDArray[np.void]


NO_SIGHTINGS: Final = np.empty(0, SIGHTINGS)
"""Sightings of nothing."""


class EdgeTimes(NamedTuple):
    """Times of messages on edges, which are (stream, source, node): of each its edge's place, and its time, µs.

    ``edge`` and ``times_us`` have the shape (messages,).
    """

    edges: tuple[tuple[str, str, str], ...]
    edge: NDArray[np.int64]
    times_us: NDArray[np.int64]


class _Stamps(NamedTuple):
    """Stamps of one side: the place of the node, the hash of the id and the lag of each; shape (stamps,)."""

    place: NDArray[np.int64]
    key: NDArray[np.uint64]
    lags_us: NDArray[np.int64]


@dataclass(slots=True)
class MessageSample:
    """Sightings at one node in one second, as they are gathered: those of the smallest hashes."""

    parts: list[NDArray[np.void]] = field(default_factory=list)
    kept: int = 0
    bound: int = 2**64 - 1
    """Hash up to which a sighting may be among the smallest."""

    def add(self, keys: NDArray[np.uint64], lag_in_us: NDArray[np.int64], lag_out_us: NDArray[np.int64]) -> None:
        """Take observations: of each the hash of its id and its lags, NOT_STAMPED where it has none."""
        is_stamped = (lag_in_us != NOT_STAMPED) | (lag_out_us != NOT_STAMPED)
        found = np.flatnonzero(is_stamped & (keys <= np.uint64(self.bound)))
        found = found[_find_smallest(keys[found])]
        self.parts.append(build_sightings(keys[found], lag_in_us[found], lag_out_us[found]))
        self.kept += len(found)
        if self.kept > 2 * MAX_SECOND_MESSAGES:
            laid = np.concatenate(self.parts)
            self.parts = [laid[_find_smallest(laid["key"])]]
            self.kept, self.bound = len(self.parts[0]), int(self.parts[0]["key"].max())


def build_sightings(
    keys: NDArray[np.uint64], lag_in_us: NDArray[np.int64], lag_out_us: NDArray[np.int64]
) -> NDArray[np.void]:
    """Return observations as sightings, of dtype SIGHTINGS, without node and second."""
    sightings = np.zeros(len(keys), SIGHTINGS)
    sightings["key"], sightings["lag_in_us"], sightings["lag_out_us"] = keys, lag_in_us, lag_out_us
    return sightings


def keep_smallest(sightings: NDArray[np.void]) -> NDArray[np.void]:
    """Return the sightings with the smallest hashes of each node and second."""
    node, second, key = (sightings[name] for name in ("node", "second", "key"))
    if not len(key):
        return sightings
    since_first = second - second.min()
    place = node.astype(np.int64) * (since_first.max() + 1) + since_first
    order = order_by_place(place, key)
    is_first = _mark_first(place[order])
    starts = np.flatnonzero(is_first)
    rank = np.arange(len(order)) - starts[np.cumsum(is_first) - 1]
    smallest: NDArray[np.void] = sightings[order[rank < MAX_SECOND_MESSAGES]]
    return smallest


def order_by_place(place: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    """Return the order by place, and by value where places are alike; places are numbers from 0, shape (n,).

    numpy sorts by 64-bit values with vector instructions, and by 16-bit ones in a pass: both are faster than one sort
    by two columns.
    """
    order = np.argsort(values)
    narrow = place[order].astype(np.min_scalar_type(int(place.max(initial=0))))
    return order[np.argsort(narrow, kind="stable")]


def measure_edges(parts: Iterable[RecentMessages], edges: StreamEdges, through_s: int) -> EdgeTimes:
    """Return the times of messages on edges: of those whose arrival was read in the span that ends at a second.

    A message that a node stamped several times has its least lag there. Edges of nodes without messages are left out.
    """
    places: dict[tuple[str, str], int] = {}
    asked = []
    for part in parts:
        own = [places.setdefault(node, len(places)) if node[0] in edges else _NOT_ASKED for node in part.nodes]
        asked.append((np.array(own, np.int64)[part.sightings["node"]], part.sightings))
    came = _find_first(_select_stamps(asked, "lag_in_us", (through_s - RECENT_SPAN_S, through_s), None))
    has_come = np.zeros(2**_MARK_BITS, bool)
    has_come[came.key >> _MARK_SHIFT] = True
    left = _find_first(_select_stamps(asked, "lag_out_us", (through_s - MAX_EDGE_S, through_s), has_come))
    named = tuple(
        (stream, *edge) for stream, of_stream in edges.items() for edge in of_stream
        if (stream, edge[0]) in places and (stream, edge[1]) in places
    )  # fmt: skip
    if not len(left.key) or not named:
        return EdgeTimes(named, np.empty(0, np.int64), np.empty(0, np.int64))
    source, node = np.array([[places[stream, place] for place in edge] for stream, *edge in named]).T
    first, end = (np.searchsorted(came.place, node, side) for side in ("left", "right"))
    edge_of = np.repeat(np.arange(len(named)), end - first)
    at = np.arange(len(edge_of)) - np.repeat(np.cumsum(end - first) - end, end - first)
    wanted_place, wanted_key = source[edge_of], came.key[at]
    mixed = _mix(left.place, left.key)
    order = np.argsort(mixed)
    found = np.searchsorted(mixed[order], _mix(wanted_place, wanted_key))
    found = order[np.minimum(found, len(order) - 1)]
    is_found = (left.place[found] == wanted_place) & (left.key[found] == wanted_key)
    return EdgeTimes(named, edge_of[is_found], (came.lags_us[at] - left.lags_us[found])[is_found])


def _find_smallest(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the places of the smallest hashes, as many as are kept."""
    if len(keys) <= MAX_SECOND_MESSAGES:
        return np.arange(len(keys))
    return np.argpartition(keys, MAX_SECOND_MESSAGES - 1)[:MAX_SECOND_MESSAGES]


def _select_stamps(
    asked: Iterable[tuple[NDArray[np.int64], NDArray[np.void]]],
    side: str,
    seconds: tuple[int, int],
    marks: NDArray[np.bool_] | None,
) -> _Stamps:
    """Return the stamps on a side in some seconds, the end not included; with marks, of marked hashes alone.

    ``asked`` are sightings, and the place of the node of each.
    """
    columns = [(np.empty(0, np.int64), NO_SIGHTINGS["key"], NO_SIGHTINGS[side])]
    for place, sightings in asked:
        second, lags_us = sightings["second"], sightings[side]
        is_wanted = (place != _NOT_ASKED) & (second >= seconds[0]) & (second < seconds[1])
        # A stamp beyond it is of a broken clock, and NOT_STAMPED is.
        is_wanted &= (lags_us >= -MAX_LAG_US) & (lags_us <= MAX_LAG_US)
        if marks is not None:
            is_wanted &= marks[sightings["key"] >> _MARK_SHIFT]
        columns.append((place[is_wanted], sightings["key"][is_wanted], lags_us[is_wanted]))
    return _Stamps(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _find_first(stamps: _Stamps) -> _Stamps:
    """Return the least lag of each message at each node, by nodes."""
    if not len(stamps.key):
        return stamps
    order = order_by_place(stamps.place, stamps.key)
    starts = np.flatnonzero(_mark_first(stamps.place[order], stamps.key[order]))
    first = order[starts]
    return _Stamps(stamps.place[first], stamps.key[first], np.minimum.reduceat(stamps.lags_us[order], starts))


def _mark_first(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows of columns, whose equal rows stand together, differ from the row before."""
    return np.append(True, np.any([column[1:] != column[:-1] for column in columns], axis=0))


def _mix(place: NDArray[np.int64], key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits for each message at a node, shape (n,)."""
    return key ^ (place.astype(np.uint64) * _MIX)
