"""Payloads of the job and the store as bytes: claims, facts, records set aside, tallies.

A payload is a JSON header with its length in front, and arrays behind it. Nothing here is read back from strangers:
payloads live in shuffles, checkpoints and the store, all written by the monitor.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import naming, tdigest
from hopwatch.monitor.kernel.books import BatchFact, DropFact, PacketFact
from hopwatch.monitor.kernel.journeys import Journeys
from hopwatch.monitor.kernel.label_lags import LabelLagTally
from hopwatch.monitor.kernel.labels import KeyKind, LabelKey, LabelTally
from hopwatch.monitor.kernel.last_sightings import LastSightings
from hopwatch.monitor.kernel.naming import Names
from hopwatch.monitor.kernel.recent import STAMPS, RecentStamps
from hopwatch.monitor.kernel.recent_messages import SIGHTINGS
from hopwatch.monitor.kernel.relations import Relation
from hopwatch.monitor.kernel.seconds import SecondTally
from hopwatch.monitor.kernel.servers import ServerIds
from hopwatch.monitor.kernel.slowest import Slowest
from hopwatch.monitor.kernel.stamp_sample import StampSample, narrow_stamps, widen_stamps
from hopwatch.monitor.kernel.tally import NEVER_US, LostIds, NodeLags, Tally
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.lag_histograms import PackedLags

_CLAIMS_WITHOUT_ID_KIND: Final = np.dtype(
    [
        *((name, "<i8") for name in ("seq", "arrival_us", "start", "end")),
        ("count", "<i4"),
        *((name, "<i8") for name in ("message_ids", "lag_in_us", "lag_out_us", "outcome")),
    ]
)
"""Claims as checkpoints have them that were written before ids had kinds."""
_CLAIMS_WITHOUT_LABELS: Final = np.dtype(
    [*_CLAIMS_WITHOUT_ID_KIND.descr, ("id_kind", "u1"), ("id_text_ends", "<i8"), ("id_texts", "<i8")]
)
"""Claims as checkpoints have them that were written before labels were counted."""
_CLAIMS_OF_ONE: Final = np.dtype([*_CLAIMS_WITHOUT_LABELS.descr, ("labels", "<i8"), ("labels_end", "<i8")])
"""Claims as checkpoints have them that were written when each parcel had those of one instance."""
CLAIMS: Final = np.dtype([*_CLAIMS_OF_ONE.descr, ("sender", "<u4")])
"""A claim check on one batch: number, arrival, where its record is, and where each field of so many items begins; of
which kind its ids are, where the ends of their texts and these begin, and where its labels begin and end; and which of
the parcel's senders sent it.
"""
EARLY: Final = 0
"""The count in a claim on a batch that came too early to count: a later copy of it is a duplicate all the same."""
NOT_LANDED: Final = ""
"""The path of what has no segment: records from Kafka that no window points to."""
NOWHERE: Final = 0
"""The place of a field that is empty: at the beginning of a segment stands its magic."""

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_LENGTH: Final = struct.Struct("<I")
_MOMENT: Final = struct.Struct("<q")
_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")
_PACKET_NUMBERS: Final = 7
"""Fields of a packet before its lags."""


@dataclass(frozen=True, slots=True)
class Claims:
    """Claim checks on the batches of one window in one segment; refs of dtype CLAIMS.

    ``senders`` are the probe instances that sent them, each as its node and :func:`tally.instance_name`.
    """

    path: str
    senders: tuple[tuple[str, str], ...]
    observations: int
    refs: NDArray[np.void]

    def pack(self) -> bytes:
        """Return the parcel."""
        header = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "refs"}
        return _pack(header, self.refs.tobytes())

    @classmethod
    def unpack(cls, parcel: bytes) -> Claims:
        """Return what was packed."""
        header, body = _unpack(parcel)
        if "senders" in header:
            senders = tuple((node, instance) for node, instance in header["senders"])
            return cls(header["path"], senders, header["observations"], np.frombuffer(body, CLAIMS))
        is_named, is_labelled = header.get("named", False), header.get("labelled", False)
        columns = _CLAIMS_WITHOUT_LABELS if is_named else _CLAIMS_WITHOUT_ID_KIND
        found = np.frombuffer(body, _CLAIMS_OF_ONE if is_labelled else columns)
        refs = np.zeros(len(found), CLAIMS)
        refs["id_kind"] = WireIdKind.UNKNOWN
        for name in found.dtype.names or ():
            refs[name] = found[name]
        return cls(header["path"], ((header["node"], header["instance"]),), header["observations"], refs)


_FACTS: Final = np.dtype(list(zip(BatchFact._fields, (*["<i8"] * 6, "<i4", "u1", "u1", "<i8"), strict=True)))
_make_fact: Final[Callable[[Iterable[int]], BatchFact]] = partial(tuple.__new__, BatchFact)
"""As ``_make`` does, without a step of Python."""


@dataclass(frozen=True, slots=True)
class FactSheet:
    """Facts for the books, of one probe instance's batches in one segment.

    ``partitions`` has the first and the last arrival of a batch of each partition, µs, where batches are labelled so.
    """

    path: str
    stream: str
    node: str
    probe: str
    epoch_us: int
    labels: dict[str, str]
    facts: Sequence[BatchFact]
    drops: tuple[DropFact, ...]
    packets: tuple[PacketFact, ...] = ()
    partitions: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Identity of the instance."""
        return self.stream, self.node, self.probe, self.epoch_us


def pack_sheets(path: str, sheets: Sequence[FactSheet]) -> bytes:
    """Return the parcel of the fact sheets of a segment."""
    told = [
        (*one.key, one.labels, len(one.facts), one.drops, list(map(_tell_packet, one.packets)), *_tell_partitions(one))
        for one in sheets
    ]
    facts = np.array([fact for one in sheets for fact in one.facts], _FACTS)
    return _pack({"path": path, "sheets": told}, facts.tobytes())


def unpack_sheets(parcel: bytes) -> Iterator[FactSheet]:
    """Yield the fact sheets that were packed; checkpoints may have parcels of one."""
    header, body = _unpack(parcel)
    facts = tuple(map(_make_fact, np.frombuffer(body, _FACTS).tolist()))
    if "sheets" not in header:
        sender = [header[name] for name in SendingInstance._fields]
        header["sheets"] = [(*sender, header["labels"], len(facts), header["drops"], header.get("packets", ()))]
    end = 0
    for stream, node, probe, epoch_us, labels, count, drops, packets, *partitions in header["sheets"]:
        start, end = end, end + count
        told = tuple(DropFact(*drop) for drop in drops), tuple(map(_read_packet, packets))
        spans = {name: (first_us, last_us) for name, (first_us, last_us) in dict(*partitions).items()}
        yield FactSheet(header["path"], stream, node, probe, epoch_us, labels, facts[start:end], *told, spans)


def _tell_partitions(sheet: FactSheet) -> Iterator[Mapping[str, tuple[int, int]]]:
    """Yield nothing where no batch has a partition, as of most probes."""
    if sheet.partitions:
        yield sheet.partitions


def _tell_packet(packet: PacketFact) -> tuple[Any, ...]:
    return (*packet[:-1], encode_histogram(packet.lags))


def _read_packet(told: Sequence[Any]) -> PacketFact:
    """Return a packet; one of a checkpoint from before lags were read has none."""
    return PacketFact(*told[:_PACKET_NUMBERS], *map(decode_histogram, told[_PACKET_NUMBERS:]))


def encode_histogram(lags: PackedLags) -> str:
    """Return a histogram of lags as a text for JSON."""
    return b64encode(lags).decode("ascii")


def decode_histogram(text: str) -> PackedLags:
    """Return the histogram that :func:`encode_histogram` was given."""
    return b64decode(text)


SET_ASIDE_REASONS: Final = (
    "bad_count",
    "bad_crc",
    "bad_length",
    "bad_marker",
    "bad_name",
    "bad_value",
    "foreign_file",
    "ignored_node",
    "malformed",
    "no_arrival_time",
    "oversized",
    "torn_tail",
    "trailing_bytes",
    "truncated",
    "unknown_node",
    "unknown_schema",
    "unknown_stream",
    "unreadable_file",
    "unsupported",
)
"""All short names of why a record cannot be counted."""


class SendingInstance(NamedTuple):
    """The probe instance that sent a record."""

    stream: str
    node: str
    probe: str
    epoch_us: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that cannot be counted: where it stood, and why.

    From a spool the path is that of the segment, from Kafka ``topic/partition``, and the position is the offset. The
    sender is known of a record that could be read, whose stream or node is not declared.
    """

    path: str
    position: int
    length: int
    arrival_us: int
    reason: str
    message: str
    sender: SendingInstance | None = None

    def pack(self) -> bytes:
        """Return the parcel."""
        return _pack({name: getattr(self, name) for name in self.__dataclass_fields__}, b"")

    @classmethod
    def unpack(cls, parcel: bytes) -> SetAside:
        """Return what was packed."""
        header = _unpack(parcel)[0]
        sender = header.pop("sender")
        return cls(**header, sender=SendingInstance(*sender) if sender else None)


@dataclass(frozen=True, slots=True)
class OffsetRun:
    """A run of records without a gap that was read from one partition of a topic; both ends are included."""

    place: str
    first: int
    last: int
    first_arrival_us: int
    last_arrival_us: int

    def longer(self, offset: int, arrival_us: int) -> OffsetRun:
        """Return the run with the next record."""
        latest_us = max(self.last_arrival_us, arrival_us)
        return OffsetRun(self.place, self.first, offset, self.first_arrival_us, latest_us)

    def pack(self) -> bytes:
        """Return the parcel."""
        return _pack({name: getattr(self, name) for name in self.__dataclass_fields__}, b"")

    @classmethod
    def unpack(cls, parcel: bytes) -> OffsetRun:
        """Return what was packed."""
        return cls(**_unpack(parcel)[0])


def pack_recent(recent: RecentStamps) -> bytes:
    """Return the parcel of recent stamps."""
    columns = recent.counts, recent.sightings, recent.lags_us, recent.weights
    rows = [len(column) for column in columns[:2]]
    header = {"nodes": recent.nodes, "rows": rows, "latest_us": recent.latest_us}
    return _pack(header, b"".join(column.tobytes() for column in columns))


def unpack_recent(parcel: bytes) -> RecentStamps:
    """Return the recent stamps that were packed."""
    header, body = _unpack(parcel)
    nodes = tuple((stream, node) for stream, node in header["nodes"])
    stamped, seen = header["rows"]
    counts = np.frombuffer(body, STAMPS, stamped)
    sightings = np.frombuffer(body[counts.nbytes :], SIGHTINGS, seen)
    lags_us, weights = np.frombuffer(body[counts.nbytes + sightings.nbytes :], np.int64).reshape(2, -1)
    return RecentStamps(nodes, counts, lags_us, weights, sightings, header["latest_us"])


def pack_tally(tally: Tally) -> bytes:
    """Return the parcel of a tally."""
    names_of = _LAGS if tally.inversions is None else (*_LAGS, "displacement")
    digests = [getattr(lags, name) for lags in tally.lags for name in names_of]
    header = {
        "shape": tally.masks.shape,
        "lost_ids": [len(lost.message_ids) for lost in tally.lost_ids],
        "digests": [(len(digest.means), digest.min, digest.max) for digest in digests],
        "last_first_sighting_us": tally.last_first_sighting_us,
        "observations": tally.observations,
        "relations": tally.relations,
    }
    centroids = [np.concatenate([getattr(digest, name) for digest in digests]) for name in ("means", "weights", "pure")]
    lost = [column for lost in tally.lost_ids for column in (lost.message_ids, lost.sighted_us)]
    arrays = (tally.masks, tally.counts, tally.sighted_us, tally.stamps, tally.negative, *lost, *centroids)
    packed = [np.ascontiguousarray(array).tobytes() for array in arrays]
    names = [naming.pack_names(lost.names) for lost in tally.lost_ids]
    header["texts"] = [len(texts) for _, _, texts in names]
    if tally.deferred is not None:
        header["deferred"] = tally.deferred.tolist()
    if tally.inversions is not None:
        header["inversions"] = tally.inversions.tolist()
    header["has_prints"] = tally.prints is not None
    header["servers"] = tally.servers
    prints = [] if tally.prints is None else [np.ascontiguousarray(tally.prints).tobytes()]
    ways = [lost.journeys.pack() for lost in tally.lost_ids]
    header["journeys"] = [len(way) for way in ways]
    slow, slow_parts = _pack_slowest(tally.slowest)
    by_label, label_parts = _pack_labels(tally.labels)
    missing = []
    if tally.missing is not None:
        header["missing"], header["last_sightings"] = len(tally.missing.counts), True
        missing = [np.ascontiguousarray(column).tobytes() for column in tally.missing]
        missing += [lost.last_us.tobytes() for lost in tally.lost_ids]
    lags_by_label, lag_parts = _pack_label_lags(tally.label_lags)
    by_second = []
    if tally.seconds is not None:
        header["seconds"] = len(tally.seconds.counts)
        by_second = [np.ascontiguousarray(column).tobytes() for column in tally.seconds]
    sample, sample_parts = _pack_sample(tally.stamp_sample)
    named = [part for of_node in names for part in of_node]
    parts = (*packed, *named, *ways, *slow_parts, *prints, *label_parts, *missing, *by_second, *lag_parts)
    return _pack(header | slow | by_label | lags_by_label | sample, b"".join((*parts, *sample_parts)))


def unpack_tally(parcel: bytes) -> Tally:
    """Return the tally that was packed."""
    header, body = _unpack(parcel)
    (count, words), nodes = header["shape"], len(header["lost_ids"])
    cut = _Cutter(body)
    masks = cut.array("<u8", count * words).reshape(count, words)
    counts, sighted_us = cut.array("<i8", count), cut.array("<i8", count)
    stamps, negative = cut.array("<i8", nodes * 2).reshape(nodes, 2), cut.array("<i8", nodes)
    lost = [(cut.array("<u8", 2 * ids).reshape(ids, 2), cut.array("<i8", ids)) for ids in header["lost_ids"]]
    digests = _cut_digests(header["digests"], cut)
    names = _cut_names(header["lost_ids"], header.get("texts"), cut)
    # Nothing is kept by tallies that were packed without.
    lengths = header.get("journeys", [0] * nodes)
    ways = [Journeys(cut.array("u1", length).tobytes()) for length in lengths]
    of_node = len(_LAGS) + ("inversions" in header)
    lags = tuple(NodeLags(*digests[place : place + of_node]) for place in range(0, len(digests), of_node))
    # Nothing was deferred in tallies that were packed without.
    deferred, inversions = (
        np.array(header[name], np.int64) if name in header else None for name in ("deferred", "inversions")
    )
    slowest = _cut_slowest(header, cut)
    prints = cut.array("<u8", 2 * count).reshape(count, 2) if header.get("has_prints") else None
    by_label, missing = _cut_labels(header, cut), _cut_missing(header, words, cut)
    # Nobody knows when what is missing was seen last by tallies that were packed without.
    has_last = header.get("last_sightings", False)
    last_us = [cut.array("<i8", ids) if has_last else np.full(ids, NEVER_US) for ids in header["lost_ids"]]
    lost_ids = tuple(
        LostIds(*ids, of_ids, way, last) for ids, of_ids, way, last in zip(lost, names, ways, last_us, strict=True)
    )
    return Tally(
        masks, counts, sighted_us, stamps, negative, lags, lost_ids,
        header["last_first_sighting_us"], header["observations"],
        tuple(Relation(*one) for one in header.get("relations", ())), slowest,
        deferred, inversions, prints, by_label, tuple(ServerIds(*one) for one in header.get("servers", ())), missing,
        _cut_seconds(header, words, cut), _cut_label_lags(header, cut), _cut_sample(header, nodes, cut),
    )  # fmt: skip


def _pack_slowest(slowest: tuple[Slowest, ...] | None) -> tuple[dict[str, Any], list[bytes]]:
    """Return what the header says of the slowest messages, and their bytes; nothing where they were not kept."""
    if slowest is None:
        return {}, []
    names = [naming.pack_names(of_node.names) for of_node in slowest]
    ids = [column.tobytes() for of_node in slowest for column in (of_node.message_ids, of_node.lag_us)]
    counts, texts = [len(of_node.lag_us) for of_node in slowest], [len(of_texts) for _, _, of_texts in names]
    header = {"slowest": counts, "slowest_texts": texts}
    return header, [*ids, *(part for of_node in names for part in of_node)]


def _cut_slowest(header: dict[str, Any], cut: _Cutter) -> tuple[Slowest, ...] | None:
    """Return the slowest messages of each node; None of tallies that were packed without."""
    if "slowest" not in header:
        return None
    ids = [(cut.array("<u8", 2 * count).reshape(count, 2), cut.array("<i8", count)) for count in header["slowest"]]
    names = _cut_names(header["slowest"], header["slowest_texts"], cut)
    return tuple(Slowest(*of_node, of_ids) for of_node, of_ids in zip(ids, names, strict=True))


def _pack_labels(tally: LabelTally | None) -> tuple[dict[str, Any], list[bytes]]:
    """Return what the header says of the counts by label, and their bytes; nothing where there are none."""
    if tally is None:
        return {}, []
    shape = (*tally.masks.shape, len(tally.messages))
    return {"labels": tally.keys, "labels_shape": shape}, [
        np.ascontiguousarray(column).tobytes() for column in tally[1:]
    ]


def _cut_labels(header: dict[str, Any], cut: _Cutter) -> LabelTally | None:
    """Return the counts by label; None of tallies that were packed without."""
    if "labels" not in header:
        return None
    count, words, cells = header["labels_shape"]
    masks, is_lost = cut.array("<u8", count * words).reshape(count, words), cut.array("?", count)
    return LabelTally(_read_keys(header["labels"]), masks, is_lost, *(cut.array("<i8", cells) for _ in range(4)))


def _pack_label_lags(tally: LabelLagTally | None) -> tuple[dict[str, Any], list[bytes]]:
    """Return what the header says of departures by label, and their bytes; nothing where there are none."""
    if tally is None:
        return {}, []
    arrays = [np.ascontiguousarray(column).tobytes() for column in tally[1:]]
    return {"label_lags": tally.keys, "label_lag_cells": len(tally.key)}, arrays


def _cut_label_lags(header: dict[str, Any], cut: _Cutter) -> LabelLagTally | None:
    """Return the departures by label; None of tallies that were packed without."""
    if "label_lags" not in header:
        return None
    return LabelLagTally(
        _read_keys(header["label_lags"]), *(cut.array("<i8", header["label_lag_cells"]) for _ in range(4))
    )


def _read_keys(told: list[tuple[int, str, int, str]]) -> tuple[LabelKey, ...]:
    return tuple(LabelKey(node, label, KeyKind(kind), value) for node, label, kind, value in told)


def _cut_missing(header: dict[str, Any], words: int, cut: _Cutter) -> LastSightings | None:
    """Return the last sightings of what is missing; None of tallies that were packed without."""
    if "missing" not in header:
        return None
    count = header["missing"]
    masks = cut.array("<u8", count * words).reshape(count, words)
    return LastSightings(masks, cut.array("<i8", count), cut.array("<i8", count))


def _cut_seconds(header: dict[str, Any], words: int, cut: _Cutter) -> SecondTally | None:
    """Return the counts by second; None of tallies that were packed without."""
    if "seconds" not in header:
        return None
    count = header["seconds"]
    masks = cut.array("<u8", count * words).reshape(count, words)
    return SecondTally(masks, *(cut.array("<i8", count) for _ in range(3)))


def _pack_sample(sample: StampSample | None) -> tuple[dict[str, Any], list[bytes]]:
    """Return what the header says of sampled stamps, and their bytes; nothing where there are none."""
    if sample is None:
        return {}, []
    stamps_us = narrow_stamps(sample)
    header = {"sample": len(sample.weights), "sample_type": stamps_us.dtype.str}
    return header, [stamps_us.tobytes(), np.ascontiguousarray(sample.weights).tobytes()]


def _cut_sample(header: dict[str, Any], nodes: int, cut: _Cutter) -> StampSample | None:
    """Return the sampled stamps; None of tallies that were packed without."""
    if "sample" not in header:
        return None
    count = header["sample"]
    stamps_us = cut.array(header["sample_type"], 2 * count * nodes).reshape(2, nodes, count)
    return widen_stamps(stamps_us, cut.array("<i8", count))


def _cut_names(counts: list[int], texts: list[int] | None, cut: _Cutter) -> list[Names]:
    """Return the names of each node's ids; nothing is known of those in tallies that were packed without."""
    if texts is None:
        return [naming.unknown_names(count) for count in counts]
    found = []
    for ids, length in zip(counts, texts, strict=True):
        kinds, ends, of_node = cut.array("u1", ids), cut.array("<u4", ids), cut.array("u1", length)
        found.append(naming.unpack_names(kinds.tobytes(), ends.tobytes(), of_node.tobytes()))
    return found


def _cut_digests(heads: list[tuple[int, int, int]], cut: _Cutter) -> list[tdigest.Digest]:
    total = sum(size for size, _, _ in heads)
    means, weights, pure = cut.array("<f8", total), cut.array("<i8", total), cut.array("?", total)
    found, start = [], 0
    for size, low, high in heads:
        own = slice(start, start + size)
        found.append(tdigest.Digest(means[own], weights[own], pure[own], low, high))
        start += size
    return found


def join_payloads(parcels: Iterable[bytes]) -> bytes:
    """Return parcels as one, to which more can be added behind."""
    return b"".join(part for parcel in parcels for part in (_LENGTH.pack(len(parcel)), parcel))


def split_payloads(joined: bytes) -> Iterator[bytes]:
    """Yield the parcels that were joined."""
    start = 0
    while start < len(joined):
        (length,) = _LENGTH.unpack_from(joined, start)
        start += _LENGTH.size + length
        yield joined[start - length : start]


def pack_moment(moment_us: int) -> bytes:
    """Return the payload of a clock row."""
    return _MOMENT.pack(moment_us)


def unpack_moment(payload: bytes) -> int:
    """Return the moment in the payload of a clock row, µs."""
    (moment_us,) = _MOMENT.unpack(payload)
    return int(moment_us)


class _Cutter:
    """Cuts a body into pieces, front to back."""

    def __init__(self, body: memoryview) -> None:
        self.body = body
        self.position = 0

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        array = np.frombuffer(self.body, dtype, count, self.position)
        self.position += array.nbytes
        return array


def _pack(header: dict[str, Any], body: bytes) -> bytes:
    head = _ENCODER.encode(header).encode()
    return b"".join((_LENGTH.pack(len(head)), head, body))


def _unpack(parcel: bytes) -> tuple[dict[str, Any], memoryview]:
    (length,) = _LENGTH.unpack_from(parcel)
    end = _LENGTH.size + length
    return json.loads(parcel[_LENGTH.size : end]), memoryview(parcel)[end:]
