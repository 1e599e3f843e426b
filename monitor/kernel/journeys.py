"""Journeys of lost messages: the stamps of each, which are kept as long as its id is listed."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_STAMPS: Final = 100
"""How many stamps of a message are kept, the first of the first nodes; beyond them they are counted."""
STAMPS: Final = np.dtype(
    [
        *((name, "<u4") for name in ("node", "probe", "reason")),
        *((name, "<i8") for name in ("event_time_us", "lag_in_us", "lag_out_us")),
        ("outcome", "u1"),
    ]
)
"""One observation; node, probe and reason are places in a list of words."""
_WORDS: Final = ("node", "probe", "reason")
_HEADER_LENGTH: Final = struct.Struct("<I")


class Recorded(NamedTuple):
    """What a record says of some of its observations: arrays of shape (n,), none of them empty for no value."""

    probe: str
    event_time_us: NDArray[np.int64]
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    reason: NDArray[np.uint8]
    reasons: Sequence[str]
    """What the numbers of ``reason`` stand for; any number beyond them stands for none."""


Record = Callable[[NDArray[np.int64]], Recorded]
"""Reads a record again: what it says of the observations at some places of the batch."""


class Source(NamedTuple):
    """Where the observations of one batch come from: its node, and its record, None where it cannot be read again.

    ``rows`` are the places in the record of the observations at hand, None for all.
    """

    node: str
    record: Record | None
    rows: NDArray[np.int64] | None


class Journeys(NamedTuple):
    """The stamps of some messages, one message's behind the other's.

    ``counts`` says how many each has, shape (messages,); of more than MAX_STAMPS the first are in ``stamps``, of dtype
    STAMPS. ``words`` are sorted.
    """

    counts: NDArray[np.uint32]
    stamps: NDArray[np.void]
    words: tuple[str, ...]

    @property
    def kept(self) -> NDArray[np.int64]:
        """How many stamps of each message are kept."""
        return np.minimum(self.counts, MAX_STAMPS).astype(np.int64)

    def taken(self, chosen: NDArray[Any]) -> Journeys:
        """Return those of the chosen messages, given as a mask or as places."""
        places = np.arange(len(self.counts))[chosen]
        sizes, starts = self.kept[places], np.cumsum(self.kept) - self.kept
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return Journeys(self.counts[places], self.stamps[np.repeat(starts[places], sizes) + within], self.words)

    def of(self, place: int) -> Iterator[dict[str, Any]]:
        """Yield the stamps of the message at a place, the fields of STAMPS by their names."""
        end = int(self.kept[: place + 1].sum())
        for stamp in self.stamps[end - int(self.kept[place]) : end]:
            told = dict(zip(STAMPS.names or (), stamp.item(), strict=True))
            yield told | {name: self.words[told[name]] for name in _WORDS}


def unknown(count: int) -> Journeys:
    """Return journeys of so many messages of which no stamp is kept."""
    return Journeys(np.zeros(count, np.uint32), np.empty(0, STAMPS), ())


def joined(parts: Sequence[Journeys]) -> Journeys:
    """Return journeys one behind the other."""
    words = tuple(sorted({word for part in parts for word in part.words}))
    places = {word: place for place, word in enumerate(words)}
    stamps = np.concatenate([np.empty(0, STAMPS), *(part.stamps for part in parts)])
    start = 0
    for part in parts:
        own = slice(start, start := start + len(part.stamps))
        there = np.array([places[word] for word in part.words], np.uint32)
        for name in _WORDS:
            stamps[name][own] = there[part.stamps[name]] if len(there) else 0
    return Journeys(np.concatenate([np.empty(0, np.uint32), *(part.counts for part in parts)]), stamps, words)


def of(
    count: int, message: NDArray[np.int64], batch: NDArray[np.int64], row: NDArray[np.int64], sources: Sequence[Source]
) -> Journeys:
    """Return the journeys of so many messages.

    Of each observation ``message`` says which one it is of, ``batch`` its place in ``sources``, ``row`` its place in
    the batch. The order of batches and of observations changes nothing.
    """
    parts, order = [], np.argsort(batch, kind="stable")
    for of_batch in np.split(order, np.flatnonzero(np.diff(batch[order])) + 1):
        source = sources[int(batch[of_batch[0]])] if len(of_batch) else None
        if source is not None and source.record is not None:
            rows = row[of_batch] if source.rows is None else source.rows[row[of_batch]]
            parts.append((message[of_batch], _stamps(source.node, source.record(rows))))
    if not parts:
        return unknown(count)
    told = joined([stamps for _, stamps in parts])
    at = np.concatenate([messages for messages, _ in parts])
    nodes = {source.node: place for place, source in reversed(list(enumerate(sources)))}
    rank = np.array([nodes.get(word, 0) for word in told.words], np.int64)
    by = ("reason", "probe", "outcome", "lag_out_us", "lag_in_us", "event_time_us")
    order = np.lexsort((*(told.stamps[name] for name in by), rank[told.stamps["node"]], at))
    counts = np.bincount(at, minlength=count)
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Journeys(counts.astype(np.uint32), told.stamps[order[within < MAX_STAMPS]], told.words)


def _stamps(node: str, told: Recorded) -> Journeys:
    reasons = [*told.reasons, ""]
    words = tuple(sorted({node, told.probe, *reasons}))
    places = {word: place for place, word in enumerate(words)}
    stamps = np.empty(len(told.event_time_us), STAMPS)
    for name in ("event_time_us", "lag_in_us", "lag_out_us", "outcome"):
        stamps[name] = getattr(told, name)
    stamps["node"], stamps["probe"] = places[node], places[told.probe]
    stamps["reason"] = np.array([places[each] for each in reasons])[np.minimum(told.reason, len(told.reasons))]
    return Journeys(np.ones(len(stamps), np.uint32), stamps, words)


def pack(journeys: Journeys) -> bytes:
    """Return journeys as bytes, the same for equal ones: compressed, column by column."""
    used = np.unique(np.concatenate([journeys.stamps[name] for name in _WORDS]))
    header = json.dumps([len(journeys.counts), len(journeys.stamps), [journeys.words[at] for at in used]]).encode()
    columns = [journeys.counts.astype("<u4")]
    for name in STAMPS.names or ():
        column = journeys.stamps[name]
        columns.append(np.searchsorted(used, column).astype("<u4") if name in _WORDS else column)
    packed = b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
    return zlib.compress(_HEADER_LENGTH.pack(len(header)) + header + packed, 1)


def unpack(packed: bytes) -> Journeys:
    """Return the journeys that were packed."""
    body = zlib.decompress(packed)
    (length,) = _HEADER_LENGTH.unpack_from(body)
    position = _HEADER_LENGTH.size + length
    messages, count, words = json.loads(body[_HEADER_LENGTH.size : position])
    counts = np.frombuffer(body, "<u4", messages, position)
    position += counts.nbytes
    stamps = np.empty(count, STAMPS)
    for name in STAMPS.names or ():
        column = np.frombuffer(body, STAMPS[name], count, position)
        stamps[name] = column
        position += column.nbytes
    return Journeys(counts, stamps, tuple(words))
