"""Accumulator of a segment's records: facts for the books, claim checks for the windows; observations stay in place.

Records that no window may count are sorted out here, by their own arrival and the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.accounting.undeclared_names import IGNORED_NODE, UNKNOWN_NODE, UNKNOWN_STREAM
from hopwatch.monitor.kernel.books import IMPLAUSIBLE, IN_WINDOW, NO_OFFSET_US, BatchFact, DropFact, PacketFact
from hopwatch.monitor.kernel.recent import NO_STAMPS, BatchStamps, RecentSampler
from hopwatch.monitor.kernel.tally import instance_name
from hopwatch.monitor.pathway import COUNT, Pathway
from hopwatch.monitor.payloads import (
    CLAIMS,
    EARLY,
    NOWHERE,
    Claims,
    FactSheet,
    SendingInstance,
    pack_recent,
    pack_sheets,
)
from hopwatch.monitor.row_kinds import CLAIMS_ROW, FACTS_ROW, RECENT_ROW
from hopwatch.monitor.spark.rows import JobRow
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import BatchKind, MetricsStamp
from hopwatch.probes.contract.limits import MONITOR_STREAM, NOT_STAMPED, PARTITION_LABEL

SHEETS_PER_ROW: Final = 2_000
"""Fact sheets of a segment that share a row."""
_FAR_US: Final = 2**62


@dataclass(slots=True)
class _Sheet:
    """The batches of one instance in one segment, as they are gathered."""

    labels: dict[str, str]
    facts: list[BatchFact] = field(default_factory=list)
    drops: list[DropFact] = field(default_factory=list)
    packets: list[PacketFact] = field(default_factory=list)
    partitions: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _WindowClaims:
    """Claim checks on the batches of one window in one segment, as they are gathered; each instance has a number."""

    senders: dict[SendingInstance, int] = field(default_factory=dict)
    refs: list[tuple[int, ...]] = field(default_factory=list)
    observations: int = 0


def parse_record(data: envelope.Buffer, start: int, end: int) -> envelope.RecordView:
    """Return the record at ``data[start:end]``, checked to its last value.

    Raises:
        RecordError: it breaks the wire.
    """
    view = envelope.read_record(data, start, end)
    envelope.check_values(data, view)
    return view


def find_undeclared(view: envelope.RecordView, rules: Mapping[str, StreamConfig]) -> envelope.RecordError | None:
    """Return why a record is set aside for its stream or its node, or for what its node does not say, if it is."""
    if view.stream == MONITOR_STREAM:
        return None
    if view.stream not in rules:
        return envelope.RecordError(UNKNOWN_STREAM, f"the configuration has no stream {view.stream!r}")
    config = rules[view.stream].at(view.window_start_ms * 1_000)
    if config.is_removed:
        return envelope.RecordError(UNKNOWN_STREAM, f"the configuration has no stream {view.stream!r} any more")
    if view.node in config.pathway.declared:
        return _find_unsupported(view, config.pathway)
    if view.node in config.ignore_nodes:
        return envelope.RecordError(IGNORED_NODE, f"ignore_nodes of {view.stream!r} names {view.node!r}")
    return envelope.RecordError("unknown_node", f"the path of {view.stream!r} has no node {view.node!r}")


def keeps_book(fault: envelope.RecordError, view: envelope.RecordView, rules: Mapping[str, StreamConfig]) -> bool:
    """Return whether the books take a record that is set aside for its node or its stream.

    So they do where the node is unknown, and where the node is ignored, or the stream removed, in the record's minute
    but not in that of others.
    """
    of_stream = rules.get(view.stream)
    if of_stream is None or fault.reason not in {UNKNOWN_NODE, UNKNOWN_STREAM, IGNORED_NODE}:
        return False
    return fault.reason != IGNORED_NODE or not of_stream.ignores_always(view.node)


def _find_unsupported(view: envelope.RecordView, pathway: Pathway) -> envelope.RecordError | None:
    """Return why a node cannot say this: ids where it is declared to count, or counts where it is declared to stamp."""
    counts = view.node not in pathway.nodes
    if view.kind == BatchKind.METRICS and not counts:
        told = f'{view.node!r} sends counts: declare it by stamps = {{ {view.node} = "{COUNT}" }}'
        return envelope.RecordError("unsupported", told)
    if view.kind == BatchKind.OBSERVATIONS and counts:
        told = f"stamps declares that {view.node!r} counts, and it sends observations"
        return envelope.RecordError("unsupported", told)
    return None


def sender_of(view: envelope.RecordView) -> SendingInstance:
    """Return the instance that sent a record."""
    return SendingInstance(view.stream, view.node, view.probe, view.epoch_us)


class SegmentAccumulator:
    """Gathers the records of one segment; recent stamps go to the sampler of the task, where there is one."""

    def __init__(self, rules: Mapping[str, StreamConfig], sampler: RecentSampler | None = None) -> None:
        """Start empty."""
        self.rules = rules
        self.sampler = sampler
        self._sheets: dict[SendingInstance, _Sheet] = {}
        self._claims: dict[tuple[str, int], _WindowClaims] = {}

    def add_record(  # noqa: PLR0913, PLR0917 - a record, and where it lies
        self,
        data: envelope.Buffer,
        view: envelope.RecordView,
        start: int,
        end: int,
        arrival_us: int,
        moved: int = 0,
        offset_max_us: int = NO_OFFSET_US,
    ) -> None:
        """Write down a record and where it lies in the segment; its fields are ``moved`` bytes behind the view's.

        Of a node that is not declared the books alone are kept: its observations are of no window.
        """
        instance = sender_of(view)
        sheet = self._sheets.get(instance)
        if sheet is None:
            sheet = self._sheets[instance] = _Sheet(view.labels)
        # The monitor's own pulse has no terms and no observations.
        is_pulse = view.stream == MONITOR_STREAM
        config = None if is_pulse else self.rules[view.stream].at(view.window_start_ms * 1_000)
        standing = config.terms.standing(view.window_start_ms, arrival_us) if config else IN_WINDOW
        complete_through_us = min(view.complete_through_us, arrival_us)
        row = len(sheet.facts)
        sheet.drops.extend(DropFact(row, drop.window_start_ms, drop.count, drop.cause) for drop in view.drops)
        if view.metrics and config is not None:
            sheet.packets.extend(
                PacketFact(row, view.window_start_ms, *told[:-1], bytes(data[slice(*told.lag_histogram)]))
                for told in view.metrics
            )
        partition = view.labels.get(PARTITION_LABEL)
        if partition is not None:
            first_us, last_us = sheet.partitions.get(partition, (arrival_us, arrival_us))
            sheet.partitions[partition] = min(first_us, arrival_us), max(last_us, arrival_us)
        came = (view.seq, arrival_us, complete_through_us, view.sent_at_us)
        from_us = _stamped_from_us(data, view, arrival_us) if standing == IMPLAUSIBLE else 0
        told = view.window_start_ms, from_us, view.count, view.kind, standing
        sheet.facts.append(BatchFact(*came, *told, offset_max_us))
        if self.sampler is not None:
            self.sampler.note_arrival(arrival_us)
            if config is not None and view.node in config.pathway.declared:
                _sample_stamps(self.sampler, data, view, arrival_us, config.pathway)
        if view.kind != BatchKind.OBSERVATIONS or config is None or view.node not in config.pathway.nodes:
            return
        if config.is_removed:
            return
        if standing == IN_WINDOW or config.terms.is_early(view.window_start_ms, arrival_us):
            is_counted = standing == IN_WINDOW
            fields = view.message_ids, view.lag_in_us, view.lag_out_us, view.outcome
            spans = *fields, view.id_text_ends, view.id_texts
            places = [span.start + moved if span.end > span.start else NOWHERE for span in spans]
            places.insert(len(fields), view.id_kind)
            said = view.labels_span
            places += [said.start + moved, said.end + moved] if view.labels else [NOWHERE, NOWHERE]
            window = self._claims.setdefault((view.stream, view.window_start_ms), _WindowClaims())
            sender = window.senders.setdefault(instance, len(window.senders))
            count = view.count if is_counted else EARLY
            window.refs.append((view.seq, arrival_us, start, end, count, *places, sender))
            window.observations += view.count * is_counted

    def rows(self, path: str) -> Iterator[JobRow]:
        """Yield what was gathered, as rows on the segment at ``path``."""
        sheets = [_seal_sheet(path, *gathered) for gathered in self._sheets.items()]
        for first in range(0, len(sheets), SHEETS_PER_ROW):
            parcel = pack_sheets(path, sheets[first : first + SHEETS_PER_ROW])
            yield JobRow(FACTS_ROW, "", 0, 0, None, parcel)
        for (stream, window_start_ms), window in self._claims.items():
            senders = tuple((one.node, instance_name(one.node, one.probe, one.epoch_us)) for one in window.senders)
            parcel = Claims(path, senders, window.observations, np.array(window.refs, CLAIMS)).pack()
            for shard in range(self.rules[stream].at(window_start_ms * 1_000).shards):
                yield JobRow(CLAIMS_ROW, stream, window_start_ms, shard, None, parcel)


def recent_rows(sampler: RecentSampler | None) -> Iterator[JobRow]:
    """Yield the row of what a sampler has gathered, if it is anything."""
    recent = sampler.collect() if sampler else NO_STAMPS
    if recent.latest_us:
        yield JobRow(RECENT_ROW, "", 0, 0, None, pack_recent(recent))


def _sample_stamps(
    sampler: RecentSampler, data: envelope.Buffer, view: envelope.RecordView, arrival_us: int, pathway: Pathway
) -> None:
    """Let a sampler take the stamps of a record of a declared node."""
    place = view.stream, view.node, arrival_us
    for told in view.metrics:
        sampler.add_packet(*place, MetricsStamp(told.stamp), told.count, bytes(data[slice(*told.lag_histogram)]))
    if view.kind == BatchKind.OBSERVATIONS:
        whole, spans = memoryview(data), (view.message_ids, view.lag_in_us, view.lag_out_us, view.outcome)
        stamps = BatchStamps(*(whole[span.start : span.end] for span in spans))
        is_one_sided = pathway.stamps[pathway.nodes.index(view.node)] != "both"
        sampler.add_batch(*place, stamps, view.count, is_one_sided=is_one_sided)


def _stamped_from_us(data: envelope.Buffer, view: envelope.RecordView, arrival_us: int) -> int:
    """Return the earliest stamp in a batch, no later than its arrival; the epoch of its instance if there is none."""
    offsets_us: NDArray[np.int64] | int = envelope.read_packed(data, view.event_offset_us, "<u4").astype(np.int64)
    if not np.size(offsets_us):
        offsets_us = 0
    earliest_us = arrival_us
    is_stamped = False
    for span in (view.lag_in_us, view.lag_out_us):
        lags_us = envelope.read_packed(data, span, "<i8")
        given = lags_us != NOT_STAMPED
        if given.any():
            # Far enough from both ends of 64 bits to be added to, and beyond any clock.
            since_us = (np.clip(lags_us, -_FAR_US, _FAR_US) + offsets_us)[given]
            earliest_us = min(earliest_us, view.window_start_ms * 1_000 + int(since_us.min()))
            is_stamped = True
    return max(-_FAR_US, earliest_us if is_stamped else min(view.epoch_us, arrival_us))


def _seal_sheet(path: str, instance: SendingInstance, sheet: _Sheet) -> FactSheet:
    return FactSheet(
        path, *instance, sheet.labels, sheet.facts, tuple(sheet.drops), tuple(sheet.packets), sheet.partitions
    )
