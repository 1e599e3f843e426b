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
from hopwatch.monitor.kernel import order
from hopwatch.monitor.kernel.journeys import RecordColumns
from hopwatch.monitor.kernel.labels import Labels
from hopwatch.monitor.kernel.naming import BatchIds
from hopwatch.monitor.kernel.observed_batches import LaidBatches, select_shard, split_batches
from hopwatch.monitor.kernel.tally import NEVER_US, Tally, build_tally
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import EARLY, NOWHERE, Claims
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.id_texts import get_text
from hopwatch.probes.contract.limits import ID_BYTES, NO_REASON, NOT_STAMPED, WINDOW_US

MIN_VIEWED: Final = 64
"""Observations a batch from which on each is looked at where it lies."""
_ENDS: Final = np.dtype("<u4")
_ID: Final = f"V{ID_BYTES}"
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
    whole = list(observed) if config.order and not shard else None
    batches = observed if whole is None else whole
    own = batches if config.shards == 1 else (select_shard(laid, shard, config.shards) for laid in batches)
    is_final = watermark_us >= config.terms.final_at_us(window_end_us - WINDOW_US)
    keeps_last = bool(config.deadlines) and not is_final
    tally = build_tally(
        *(config.pathway, own, window_end_us, config.terms, config.max_lost_ids),
        keeps_last=keeps_last,
        keeps_seconds=config.shards > 1,
        keeps_stamps=watermark_us >= window_end_us or has_arrivals_since(claims, window_end_us),
    )
    if whole is None:
        return tally
    found = order.find_order(config.pathway, [batch for laid in whole for batch in split_batches(laid)])
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


def _read_observations(pathway: Pathway, claims: Sequence[Claims]) -> Iterator[LaidBatches]:
    """Yield the batches that the claims point to, each once: of each segment those of a node that are alike."""
    segments = _SegmentCache()
    known: dict[bytes, Labels] = {}
    for claim, kept in zip(claims, drop_duplicates(claims), strict=True):
        # Nothing keeps the segment of a batch that does not count.
        refs = kept[kept["count"] != EARLY]
        if not len(refs):
            continue
        segment = segments[claim.path]
        # The records were checked when they were claimed; that they are still there costs little to know.
        envelope.check_prefixes(segment, refs["start"], refs["end"])
        node = np.array([pathway.nodes.index(node) for node, _ in claim.senders], np.int64)[refs["sender"]]
        form = node
        for name in ("lag_in_us", "lag_out_us", "outcome"):
            form = 2 * form + (refs[name] != NOWHERE)
        ordered = np.argsort(form, kind="stable")
        for alike in np.split(ordered, np.flatnonzero(np.diff(form[ordered])) + 1):
            yield _read_alike(claim, segment, int(node[alike[0]]), refs[alike], known)


def _read_alike(
    claim: Claims, segment: envelope.Buffer, node: int, refs: NDArray[np.void], known: dict[bytes, Labels]
) -> LaidBatches:
    """Return the batches of one node in a segment of which the same fields are given."""
    places = [refs[name].tolist() for name in ("start", "end", "message_ids", "count", "id_text_ends", "id_texts")]
    records = [_LazyRecord(segment, *at) for at in zip(*places, strict=True)]
    pairs = zip(records, refs["id_kind"].tolist(), strict=True)
    return LaidBatches(
        node,
        refs["arrival_us"],
        refs["count"].astype(np.int64),
        [claim.senders[sender][1] for sender in refs["sender"].tolist()],
        _read_labels(segment, refs, known),
        [BatchIds(node, kind, record.read_text if record.ends_at else None, None) for record, kind in pairs],
        records,
        [None] * len(refs),
        [record.read_offsets for record in records],
        [piece.view("<u8").reshape(-1, 2) for piece in _read_column(segment, refs, "message_ids", _ID)],
        _read_column(segment, refs, "lag_in_us", "<i8"),
        _read_column(segment, refs, "lag_out_us", "<i8"),
        _read_column(segment, refs, "outcome", "u1"),
    )


def _read_column(segment: envelope.Buffer, refs: NDArray[np.void], name: str, dtype: str) -> list[NDArray[Any]]:
    """Return a field of batches that all give it, or none: the items of all of them in pieces."""
    starts, counts = refs[name], refs["count"].astype(np.int64)
    if starts[0] == NOWHERE:
        return [np.empty(0, dtype)]
    if counts.mean() < MIN_VIEWED:
        return [envelope.read_packed_many(segment, starts, counts, dtype)]
    return [
        np.frombuffer(segment, dtype, count, start)
        for count, start in zip(counts.tolist(), starts.tolist(), strict=True)
    ]


def _read_labels(segment: envelope.Buffer, refs: NDArray[np.void], known: dict[bytes, Labels]) -> list[Labels]:
    """Return the labels of batches; most batches of a window have the same as another."""
    if not refs["labels"].any():
        return [()] * len(refs)
    found = []
    for start, end in zip(refs["labels"].tolist(), refs["labels_end"].tolist(), strict=True):
        said = b"" if start == NOWHERE else bytes(segment[start:end])
        if said not in known:
            known[said] = tuple(sorted(envelope.read_labels(said, 0, len(said)).items())) if said else ()
        found.append(known[said])
    return found


@dataclass(slots=True)
class _LazyRecord:
    """A record that was checked when it was claimed; it is read again by who asks, once."""

    segment: envelope.Buffer
    start: int
    end: int
    ids_at: int
    count: int
    ends_at: int
    texts_at: int
    view: envelope.RecordView | None = None

    def read_text(self, row: int) -> bytes:
        """Return the text of an id; it has texts."""
        ends = np.frombuffer(self.segment, _ENDS, self.count, self.ends_at)
        return get_text(np.frombuffer(self.segment, np.uint8, int(ends[-1]), self.texts_at), ends, row)

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
