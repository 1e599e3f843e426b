"""Reader of claim checks: reads a window's observations from their segments, and reduces them to a tally."""

from __future__ import annotations

import mmap
import resource
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor import segment_file
from hopwatch.monitor.kernel import masks, order
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.labels import Labels
from hopwatch.monitor.kernel.tally import NEVER_US, ObservedBatch, Tally, build_tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import EARLY, NOWHERE, Claims
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import ID_BYTES, NO_REASON, NOT_STAMPED, WINDOW_US

_WORDS: Final = np.dtype("<u8")
"""Type of the halves of an id."""
_LAGS: Final = np.dtype("<i8")
_ENDS: Final = np.dtype("<u4")
_BYTES: Final = np.dtype("u1")
_EMPTY: Final = {dtype: np.frombuffer(b"", dtype) for dtype in (_LAGS, _ENDS, _BYTES)}
"""Read-only, as all that is read from segments."""
_NO_OFFSETS: Final = np.empty(0, np.uint32)
MAX_MAPPED: Final = 8_192
"""Segments of a window that are mapped at once, where the process may open twice as many files."""


def tally_claims(
    config: StreamConfig, claims: Sequence[Claims], window_end_us: int, shard: int = 0, watermark_us: int = NEVER_US
) -> Tally:
    """Return the tally of the observations that the claims point to, those of one shard, each batch once.

    Messages of all shards overtake each other: where order is counted, the first shard counts that of the whole window.
    Of a window that is not final by the watermark, last sightings are kept if the stream has deadlines. Of one that
    lasts, by the watermark and by what has arrived, no stamps are: most tallies are of such, and nobody asks for times.
    """
    observed = _read_observations(config.pathway, claims)
    batches = list(observed) if config.order and not shard else None
    own = _select_shards(observed if batches is None else batches, shard, config.shards)
    is_final = watermark_us >= config.terms.final_at_us(window_end_us - WINDOW_US)
    keeps_last = bool(config.deadlines) and not is_final
    tally = build_tally(
        *(config.pathway, own, window_end_us, config.terms, config.max_lost_ids),
        keeps_last=keeps_last,
        keeps_seconds=config.shards > 1,
        keeps_stamps=watermark_us >= window_end_us or has_arrivals_since(claims, window_end_us),
    )
    if batches is None:
        return tally
    found = order.find_order(config.pathway, batches)
    lags = tuple(replace(own, displacement=of) for own, of in zip(tally.lags, found.displacement, strict=True))
    return replace(tally, lags=lags, inversions=found.inversions)


def has_arrivals_since(claims: Iterable[Claims], moment_us: int) -> bool:
    """Return whether any batch arrived at a moment or later."""
    return any(bool((claim.refs["arrival_us"] >= moment_us).any()) for claim in claims)


def drop_duplicates(claims: Sequence[Claims]) -> list[NDArray[np.void]]:
    """Return the refs of each claim that stand for a batch not claimed before it, by arrival."""
    if not claims:
        return []
    sizes = [len(claim.refs) for claim in claims]
    names: dict[str, int] = {}
    instance = np.concatenate(
        [
            np.array([names.setdefault(name, len(names)) for _, name in claim.senders], np.int64)[claim.refs["sender"]]
            for claim in claims
        ]
    )
    place = np.repeat(np.arange(len(claims)), sizes)
    rank = np.empty(len(claims), np.int64)
    rank[sorted(range(len(claims)), key=lambda at: claims[at].path)] = np.arange(len(claims))
    seq, arrival_us = (np.concatenate([claim.refs[name] for claim in claims]) for name in ("seq", "arrival_us"))
    order = np.lexsort((np.arange(len(seq)), rank[place], arrival_us, seq, instance))
    first = np.ones(len(order), bool)
    first[1:] = (seq[order][1:] != seq[order][:-1]) | (instance[order][1:] != instance[order][:-1])
    keep = np.zeros(len(order), bool)
    keep[order[first]] = True
    return [claim.refs[part] for claim, part in zip(claims, np.split(keep, np.cumsum(sizes)[:-1]), strict=True)]


def _read_observations(pathway: Pathway, claims: Sequence[Claims]) -> Iterator[ObservedBatch]:
    segments = _SegmentCache()
    known: dict[bytes, Labels] = {}
    for claim, refs in zip(claims, drop_duplicates(claims), strict=True):
        senders = [(pathway.nodes.index(node), instance) for node, instance in claim.senders]
        for (
            _,
            arrival_us,
            start,
            end,
            count,
            ids_at,
            lag_in_at,
            lag_out_at,
            outcome_at,
            id_kind,
            ends_at,
            texts_at,
            labels_at,
            labels_end,
            sender,
        ) in refs.tolist():
            if count == EARLY:
                # Nothing keeps the segment of a batch that does not count.
                continue
            node, instance = senders[sender]
            segment = segments[claim.path]
            # The record was checked when it was claimed; that it is still there costs little to know.
            envelope.check_prefix(segment, start, end)
            text_ends = _read_field(segment, count, _ENDS, ends_at)
            record = _LazyRecord(segment, start, end, ids_at, count)
            yield ObservedBatch(
                node,
                instance,
                arrival_us,
                np.frombuffer(segment, _WORDS, 2 * count, ids_at).reshape(-1, 2),
                _read_field(segment, count, _LAGS, lag_in_at),
                _read_field(segment, count, _LAGS, lag_out_at),
                _read_field(segment, count, _BYTES, outcome_at),
                id_kind,
                _read_field(segment, int(text_ends[-1]) if len(text_ends) else 0, _BYTES, texts_at),
                text_ends,
                None,
                record,
                _read_labels(segment, labels_at, labels_end, known),
                record.read_offsets,
            )


def _read_labels(segment: envelope.Buffer, start: int, end: int, known: dict[bytes, Labels]) -> Labels:
    """Return the labels of a batch; most batches of a window have the same as another."""
    if start == NOWHERE:
        return ()
    said = bytes(segment[start:end])
    if said not in known:
        known[said] = tuple(sorted(envelope.read_labels(said, 0, len(said)).items()))
    return known[said]


def _select_shards(batches: Iterable[ObservedBatch], shard: int, shards: int) -> Iterable[ObservedBatch]:
    return batches if shards == 1 else (_select_shard(batch, shard, shards) for batch in batches)


@dataclass(slots=True)
class _LazyRecord:
    """A record that was checked when it was claimed; it is read again by who asks, once."""

    segment: envelope.Buffer
    start: int
    end: int
    ids_at: int
    count: int
    view: envelope.RecordView | None = None

    def read_offsets(self) -> NDArray[np.uint32]:
        """Return its event offsets, none where it has none; without a look at what else it says."""
        place = envelope.find_event_offsets(self.segment, self.ids_at + ID_BYTES * self.count)
        return _NO_OFFSETS if place is None else np.frombuffer(self.segment, _ENDS, self.count, place)

    def __call__(self, rows: NDArray[Any]) -> RecordColumns:
        """Return what it says of the observations at some places."""
        view = self.view = self.view or envelope.read_record(self.segment, self.start, self.end)

        def column(span: envelope.ByteSpan, dtype: str, missing: int) -> NDArray[Any]:
            given = envelope.read_packed(self.segment, span, dtype)
            return given[rows] if len(given) else np.full(len(rows), missing, dtype)

        return RecordColumns(
            probe=view.probe,
            event_time_us=view.window_start_ms * 1_000 + column(view.event_offset_us, "<u4", 0).astype(np.int64),
            lag_in_us=column(view.lag_in_us, "<i8", NOT_STAMPED),
            lag_out_us=column(view.lag_out_us, "<i8", NOT_STAMPED),
            outcome=column(view.outcome, "u1", Outcome.PASSED),
            reason=column(view.reason, "u1", NO_REASON),
            reasons=view.reasons,
            until_us=column(view.until_us, "<i8", 0),
        )


class _SegmentCache(dict[str, envelope.Buffer]):
    """Segments' bytes by their paths, each mapped once and not read: a whole segment is never written again.

    A mapped file keeps a descriptor, so that those beyond half of what the process may open are read into memory.
    """

    def __init__(self) -> None:
        """Let the process open as many files as it may."""
        super().__init__()
        self._max_mapped = min(MAX_MAPPED, _raise_file_limit(2 * MAX_MAPPED) // 2)

    def __missing__(self, path: str) -> envelope.Buffer:
        with FileIO(segment_file.open_segment_file(path)) as file:
            is_mapped = len(self) < self._max_mapped
            self[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if is_mapped else file.readall()
        return self[path]


def _raise_file_limit(wanted: int) -> int:
    """Let the process have so many files open, as far as the system lets it; return how many it may have now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(soft, allowed)


def _read_field(segment: envelope.Buffer, count: int, dtype: np.dtype[Any], place: int) -> NDArray[Any]:
    return _EMPTY[dtype] if place == NOWHERE else np.frombuffer(segment, dtype, count, place)


def _select_shard(batch: ObservedBatch, shard: int, shards: int) -> ObservedBatch:
    chosen = masks.shard_of(batch.message_ids, shards) == shard
    return ObservedBatch(
        batch.node,
        batch.instance,
        batch.arrival_us,
        batch.message_ids[chosen],
        _select_column(batch.lag_in_us, chosen),
        _select_column(batch.lag_out_us, chosen),
        _select_column(batch.outcome, chosen),
        batch.id_kind,
        batch.id_texts,
        batch.id_text_ends,
        # A batch has at most 65,536 observations.
        np.flatnonzero(chosen).astype(np.uint16),
        batch.record,
        batch.labels,
        batch.read_offsets,
    )


def _select_column(column: NDArray[Any], chosen: NDArray[np.bool_]) -> NDArray[Any]:
    return column[chosen] if len(column) else column
