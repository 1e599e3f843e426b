"""Journeys of lost messages: the stamps of each, which are kept as long as its id is listed."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups

MAX_STAMPS: Final = 256
"""Stamps of a message that are kept at most, others are only counted: enough for one of every node of a pathway."""
STAMPS: Final = np.dtype(
    [
        *((name, "<u4") for name in ("node", "probe", "reason")),
        *((name, "<i8") for name in ("event_time_us", "lag_in_us", "lag_out_us")),
        ("outcome", "u1"),
    ]
)
"""One observation; node, probe and reason are places in a list of words."""
_WORDS: Final = ("node", "probe", "reason")
_VALUES: Final = ("event_time_us", "lag_in_us", "lag_out_us", "outcome")
_HEADER_LENGTH: Final = struct.Struct("<I")


class RecordColumns(NamedTuple):
    """Columns of some observations of a record: arrays of shape (n,), none of them empty for no value."""

    probe: str
    event_time_us: NDArray[np.int64]
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    reason: NDArray[np.uint8]
    reasons: Sequence[str]
    """Texts of the numbers in ``reason``; any number beyond them means no reason."""
    until_us: NDArray[np.int64]
    """Until when a deferred message waits; 0 of others."""


RecordReader = Callable[[NDArray[Any]], RecordColumns]
"""Reads the columns of the observations at some indexes of a batch."""


class BatchSource(NamedTuple):
    """Source of the observations of one batch: its node, and a reader of its record, None if it cannot be read again.

    ``rows`` are the places in the record of the observations at hand, None for all.
    """

    node: str
    record: RecordReader | None
    rows: NDArray[np.uint16] | None


class Journeys(NamedTuple):
    """The stamps of some messages, compressed until somebody asks for them: a window has far more than are looked at.

    ``chosen`` are the places of the messages at hand among those that were packed, None for all; no bytes say that
    nothing is kept.
    """

    packed: bytes = b""
    chosen: NDArray[np.int64] | None = None

    def taken(self, chosen: NDArray[Any]) -> Journeys:
        """Return those of the chosen messages, given as a mask or as places."""
        if not self.packed:
            return self
        if self.chosen is None:
            return Journeys(self.packed, np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen)
        return Journeys(self.packed, self.chosen[chosen])

    def pack(self) -> bytes:
        """Return them as bytes, the same for equal ones."""
        return self.packed if self.chosen is None or not self.packed else _pack_table(self.table())

    def read_stamps(self, place: int) -> tuple[int, list[dict[str, Any]]]:
        """Return how many stamps the message at a place has, and those that are kept, the fields of STAMPS by names."""
        if not self.packed:
            return 0, []
        one = self.taken(np.array([place])).table()
        return int(one.counts[0]), list(one.iterate_stamps())

    def table(self) -> StampTable:
        """Return the stamps as arrays; there are some."""
        table = _unpack_table(self.packed)
        return table if self.chosen is None else table.taken(self.chosen)


class StampTable(NamedTuple):
    """The stamps of some messages, one message's behind the other's.

    ``counts`` says how many each has, shape (messages,); of more than MAX_STAMPS the first are in ``stamps``, of dtype
    STAMPS. ``words`` are sorted.
    """

    counts: NDArray[np.uint32]
    stamps: NDArray[np.void]
    words: tuple[str, ...]

    def taken(self, places: NDArray[np.int64]) -> StampTable:
        """Return the messages at some places."""
        kept = np.minimum(self.counts, MAX_STAMPS).astype(np.int64)
        groups = Groups(np.arange(len(self.stamps)), np.cumsum(kept) - kept)
        _, chosen = masks.find_observations(groups, places)
        return StampTable(self.counts[places], self.stamps[chosen], self.words)

    def split(self, counts: Sequence[int]) -> Iterator[StampTable]:
        """Yield the tables of lists of messages that follow each other."""
        ends = np.cumsum(np.minimum(self.counts, MAX_STAMPS), dtype=np.int64)
        begin = start = 0
        for end in np.cumsum(counts).tolist():
            stop = int(ends[end - 1]) if end else 0
            yield StampTable(self.counts[begin:end], self.stamps[start:stop], self.words)
            begin, start = end, stop

    def iterate_stamps(self) -> Iterator[dict[str, Any]]:
        """Yield the stamps, with their words."""
        for stamp in self.stamps:
            told = dict(zip(STAMPS.names or (), stamp.item(), strict=True))
            yield told | {name: self.words[told[name]] for name in _WORDS}


def join_journeys(parts: Sequence[tuple[int, Journeys]]) -> Journeys:
    """Return journeys one behind the other; of each part it is said how many messages it is of."""
    if not any(part.packed for _, part in parts):
        return Journeys()
    tables = [
        part.table() if part.packed else StampTable(np.zeros(count, np.uint32), np.empty(0, STAMPS), ())
        for count, part in parts
    ]
    words = tuple(sorted({word for table in tables for word in table.words}))
    stamps = np.concatenate([_renumber_words(table.stamps, table.words, words) for table in tables])
    return Journeys(_pack_table(StampTable(np.concatenate([table.counts for table in tables]), stamps, words)))


def build_journeys(
    counts: Sequence[int],
    message: NDArray[np.int64],
    batch: NDArray[np.int64],
    row: NDArray[np.int64],
    sources: Sequence[BatchSource],
) -> list[Journeys]:
    """Return the journeys of several lists of messages, which have so many each; each record is read once for all.

    Of each observation ``message`` says which one it is of, counted through all lists, ``batch`` its place in
    ``sources``, ``row`` its place in the batch; sources are in the order of their nodes. The order of a node's batches
    and of observations changes nothing. Of very many stamps one of each node is kept before any other.
    """
    order = np.argsort(batch, kind="stable")
    message, batch, row = message[order], batch[order], row[order]
    stamps, words = np.empty(len(batch), STAMPS), dict[str, int]()
    is_told = np.zeros(len(batch), np.bool_)
    bounds = np.append(np.flatnonzero(np.diff(batch, prepend=-1)), len(batch))
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        source = sources[int(batch[start])]
        if source.record is not None:
            rows = row[start:end] if source.rows is None else source.rows[row[start:end]]
            _write_stamps(stamps[start:end], source.node, source.record(rows), words)
            is_told[start:end] = True
    if not is_told.any():
        return [Journeys()] * len(counts)
    in_order = tuple(sorted(words))
    stamps, message = _renumber_words(stamps[is_told], tuple(words), in_order), message[is_told]
    ranks = {source.node: rank for rank, source in reversed(list(enumerate(sources)))}
    node = np.array([ranks.get(word, 0) for word in in_order], np.int64)[stamps["node"]]
    stamp_counts = np.bincount(message, minlength=sum(counts)).astype(np.uint32)
    whole = StampTable(stamp_counts, _select_first(stamps, message, node), in_order)
    return [Journeys(_pack_table(table)) if len(table.stamps) else Journeys() for table in whole.split(counts)]


def _write_stamps(stamps: NDArray[np.void], node: str, told: RecordColumns, words: dict[str, int]) -> None:
    """Write what a record says into the stamps; words that are new are numbered as they come."""
    for name in _VALUES:
        stamps[name] = getattr(told, name)
    said = (node, told.probe, *told.reasons, "")
    node_at, probe_at, *reasons_at = [words.setdefault(word, len(words)) for word in said]
    stamps["node"], stamps["probe"] = node_at, probe_at
    stamps["reason"] = np.array(reasons_at, np.uint32)[np.minimum(told.reason, len(told.reasons))]


def _renumber_words(stamps: NDArray[np.void], words: Sequence[str], others: Sequence[str]) -> NDArray[np.void]:
    """Let stamps name words by their places among others, which hold them all; they are the stamps that are given."""
    places = {word: place for place, word in enumerate(others)}
    there = np.array([places[word] for word in words], np.uint32)
    for name in _WORDS:
        stamps[name] = there[stamps[name]]
    return stamps


def _select_first(stamps: NDArray[np.void], message: NDArray[np.int64], node: NDArray[np.int64]) -> NDArray[np.void]:
    """Return the stamps message by message and node by node, of more than MAX_STAMPS the first of each node first."""
    by = ("reason", "probe", "outcome", "lag_out_us", "lag_in_us", "event_time_us")
    order = np.lexsort((*(stamps[name] for name in by), node, message))
    stamps, message, node = stamps[order], message[order], node[order]
    if np.bincount(message).max() <= MAX_STAMPS:
        return stamps
    rank = _place_in_run(message * (int(node.max()) + 1) + node)
    in_turn = np.lexsort((node, rank, message))
    keep = np.zeros(len(stamps), np.bool_)
    keep[in_turn[_place_in_run(message[in_turn]) < MAX_STAMPS]] = True
    return stamps[keep]


def _place_in_run(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each value in its run of equal ones."""
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    return np.arange(len(values)) - np.repeat(starts, np.diff(np.append(starts, len(values))))


def _pack_table(table: StampTable) -> bytes:
    """Return stamps compressed, column by column, with the words that they use."""
    used = np.unique(np.concatenate([table.stamps[name] for name in _WORDS]))
    header = json.dumps([len(table.counts), len(table.stamps), [table.words[at] for at in used.tolist()]]).encode()
    columns: list[NDArray[Any]] = [table.counts.astype("<u4")]
    columns += [np.searchsorted(used, table.stamps[name]).astype("<u4") for name in _WORDS]
    columns += [table.stamps[name] for name in _VALUES]
    body = b"".join(np.ascontiguousarray(column).tobytes() for column in columns)
    return zlib.compress(_HEADER_LENGTH.pack(len(header)) + header + body, 1)


def _unpack_table(packed: bytes) -> StampTable:
    body = zlib.decompress(packed)
    (length,) = _HEADER_LENGTH.unpack_from(body)
    position = _HEADER_LENGTH.size + length
    messages, count, words = json.loads(body[_HEADER_LENGTH.size : position])
    counts = np.frombuffer(body, "<u4", messages, position)
    position += counts.nbytes
    stamps = np.empty(count, STAMPS)
    for name in (*_WORDS, *_VALUES):
        stamps[name] = np.frombuffer(body, STAMPS[name], count, position)
        position += stamps[name].nbytes
    return StampTable(counts, stamps, tuple(words))
