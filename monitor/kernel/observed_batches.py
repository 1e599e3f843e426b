"""Observations of a window as batches, and laid end to end: what is left to Python is a step a batch.

Small batches are many: those of one node whose packed fields are given or empty alike can come laid out already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.journeys import RecordReader
from hopwatch.monitor.kernel.labels import Labels
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.kernel.naming import BatchIds
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.id_texts import get_text

OffsetReader = Callable[[], NDArray[np.uint32]]
"""Reads the event offsets of a whole batch, µs, which are empty where it tells none."""
BatchForm = tuple[int, bool, bool, bool]
"""The node of a batch, and whether it gives lags at arrival, lags at departure, and outcomes."""
_NO_TEXTS: Final = np.empty(0, np.uint8)
_NO_ENDS: Final = np.empty(0, np.uint32)


class ObservedBatch(NamedTuple):
    """The observations of one batch, as arrays over where they were read; empty arrays as on the wire.

    ``instance`` tells the probe instance that sent it from all others of its stream.
    ``rows`` are the places in the batch that these observations had, where they are not all of it; ``record`` reads
    more of them, for the few that are shown. ``read_offsets`` is not called without need.
    """

    node: int
    instance: str
    arrival_us: int
    message_ids: Ids
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]
    id_kind: int = WireIdKind.UNKNOWN
    id_texts: NDArray[np.uint8] = _NO_TEXTS
    id_text_ends: NDArray[np.uint32] = _NO_ENDS
    rows: NDArray[np.uint16] | None = None
    record: RecordReader | None = None
    labels: Labels = ()
    read_offsets: OffsetReader | None = None


class LaidBatches(NamedTuple):
    """Batches of one node whose packed fields are given or empty alike.

    ``message_ids``, ``lag_in_us``, ``lag_out_us`` and ``outcome`` are pieces, which are laid end to end the columns of
    all batches; the other fields have one item for each batch, and ``counts`` says how many observations it has.
    """

    node: int
    arrival_us: NDArray[np.int64]
    counts: NDArray[np.int64]
    instances: Sequence[str]
    labels: Sequence[Labels]
    said: Sequence[BatchIds]
    records: Sequence[RecordReader | None]
    rows: Sequence[NDArray[np.uint16] | None]
    offset_readers: Sequence[OffsetReader | None]
    message_ids: Sequence[Ids]
    lag_in_us: Sequence[NDArray[np.int64]]
    lag_out_us: Sequence[NDArray[np.int64]]
    outcome: Sequence[NDArray[np.uint8]]

    @property
    def form(self) -> BatchForm:
        """Node of all batches, and which of their fields are given."""
        lag_in, lag_out, outcome = (any(map(len, column)) for column in self[-3:])
        return self.node, lag_in, lag_out, outcome


class UniformBatches(NamedTuple):
    """All batches of a window of one form, with their columns laid end to end."""

    node: int
    arrival_us: NDArray[np.int64]
    counts: NDArray[np.int64]
    instances: tuple[str, ...]
    labels: tuple[Labels, ...]
    said: tuple[BatchIds, ...]
    records: tuple[RecordReader | None, ...]
    rows: tuple[NDArray[np.uint16] | None, ...]
    offset_readers: tuple[OffsetReader | None, ...]
    message_ids: Ids
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    outcome: NDArray[np.uint8]


def join_batches(batches: Iterable[ObservedBatch | LaidBatches]) -> list[UniformBatches]:
    """Lay the batches of each form end to end; forms are in the order of their nodes."""
    single: defaultdict[BatchForm, list[ObservedBatch]] = defaultdict(list)
    laid: defaultdict[BatchForm, list[LaidBatches]] = defaultdict(list)
    for one in batches:
        if isinstance(one, LaidBatches):
            laid[one.form].append(one)
        else:
            form = (one.node, len(one.lag_in_us) > 0, len(one.lag_out_us) > 0, len(one.outcome) > 0)
            single[form].append(one)
    for form, of_form in single.items():
        laid[form].append(_lay_batches(of_form))
    return [_join_laid(laid[form]) for form in sorted(laid)]


def select_shard(laid: LaidBatches, shard: int, shards: int) -> LaidBatches:
    """Return the observations of the messages of one shard; batches that have none of them stay."""
    ids = concatenate(laid.message_ids)
    chosen = masks.shard_of(ids, shards) == shard
    batch = np.repeat(np.arange(len(laid.counts)), laid.counts)[chosen]
    counts = np.bincount(batch, minlength=len(laid.counts)).astype(np.int64)
    # A batch has at most 65,536 observations.
    rows = (np.flatnonzero(chosen) - (np.cumsum(laid.counts) - laid.counts)[batch]).astype(np.uint16)
    of_batches = np.split(rows, np.cumsum(counts)[:-1])
    said = [one._replace(rows=own) for one, own in zip(laid.said, of_batches, strict=True)]
    columns: list[Sequence[NDArray[Any]]] = [laid.lag_in_us, laid.lag_out_us, laid.outcome]
    lag_in_us, lag_out_us, outcome = (_select_rows(column, chosen) for column in columns)
    return laid._replace(
        counts=counts, said=said, rows=of_batches, message_ids=[ids[chosen]],
        lag_in_us=lag_in_us, lag_out_us=lag_out_us, outcome=outcome,
    )  # fmt: skip


def _select_rows(column: Sequence[NDArray[Any]], chosen: NDArray[np.bool_]) -> list[NDArray[Any]]:
    whole = concatenate(column)
    return [whole[chosen] if len(whole) else whole]


def split_batches(laid: LaidBatches) -> Iterator[ObservedBatch]:
    """Yield each batch by itself: its instance, its arrival, its ids, and the reader of its record."""
    ids = np.split(concatenate(laid.message_ids), np.cumsum(laid.counts)[:-1])
    nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    columns = zip(laid.instances, laid.arrival_us.tolist(), ids, laid.rows, laid.records, strict=True)
    for instance, arrival_us, own, rows, record in columns:
        yield ObservedBatch(laid.node, instance, arrival_us, own, *nothing, rows=rows, record=record)


def concatenate(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return pieces end to end; one piece is not copied."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _lay_batches(batches: Sequence[ObservedBatch]) -> LaidBatches:
    return LaidBatches(
        batches[0].node,
        np.array([one.arrival_us for one in batches], np.int64),
        np.array([len(one.message_ids) for one in batches], np.int64),
        [one.instance for one in batches],
        [one.labels for one in batches],
        [BatchIds(one.node, one.id_kind, _find_texts(one), one.rows) for one in batches],
        [one.record for one in batches],
        [one.rows for one in batches],
        [one.read_offsets for one in batches],
        *([getattr(one, name) for one in batches] for name in ("message_ids", "lag_in_us", "lag_out_us", "outcome")),
    )


def _find_texts(batch: ObservedBatch) -> Callable[[int], bytes] | None:
    return partial(get_text, batch.id_texts, batch.id_text_ends) if len(batch.id_text_ends) else None


def _join_laid(parts: Sequence[LaidBatches]) -> UniformBatches:
    return UniformBatches(
        parts[0].node,
        concatenate([part.arrival_us for part in parts]),
        concatenate([part.counts for part in parts]),
        tuple(one for part in parts for one in part.instances),
        tuple(one for part in parts for one in part.labels),
        tuple(one for part in parts for one in part.said),
        tuple(one for part in parts for one in part.records),
        tuple(one for part in parts for one in part.rows),
        tuple(one for part in parts for one in part.offset_readers),
        concatenate([piece for part in parts for piece in part.message_ids]),
        concatenate([piece for part in parts for piece in part.lag_in_us]),
        concatenate([piece for part in parts for piece in part.lag_out_us]),
        concatenate([piece for part in parts for piece in part.outcome]),
    )
