"""Rows of the quality page: records set aside, undeclared names, rejected and filtered messages, holes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.accounting.quality import Quality, StoppedMessages
from hopwatch.monitor.accounting.undeclared_names import MAX_NAMES, UNKNOWN_NODE, UndeclaredName
from hopwatch.monitor.payloads import SetAside

MEANINGS: Final = {
    "bad_count": "its number of observations is more than a record may hold, or 0 where there must be some",
    "bad_crc": "its bytes differ from those that were written: the checksum does not match",
    "bad_length": "one of its fields is not as long as its count says, or longer than it may be",
    "bad_marker": "it does not begin like a record of a probe: another program wrote it",
    "bad_name": "the name of its stream, node or probe is not valid",
    "bad_value": "one of its values is not possible",
    "foreign_file": "a file of the spool is no segment",
    "ignored_node": "ignore_nodes of the stream names its node",
    "malformed": "it cannot be decoded",
    "no_arrival_time": "the topic does not keep when records arrive",
    "oversized": "it is larger than records, or segments, may be",
    "torn_tail": "its segment ends in the middle of it: the writer or its host died",
    "trailing_bytes": "there is more behind its end",
    "truncated": "it ends too early",
    "unknown_node": "the configuration has no such node in the stream: a misspelt name?",
    "unknown_schema": "its layout is not known here: its probe may be newer than this monitor",
    "unknown_stream": "the configuration has no such stream",
    "unreadable_file": "a file of the spool is gone or cannot be read, or its name is not UTF-8",
    "unsupported": "its node is not declared to say this: counts, or ids; or its probe is newer than this monitor",
}
MAX_TEXT: Final = 400
"""Characters that are shown of what is wrong with a record."""
NOT_KEPT: Final = (
    "Reasons are not kept in the store: hopwatch find ID shows that of one message, as long as the transport keeps its "
    "records."
)


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """A reason: what it means, and how many records."""

    name: str
    meaning: str
    in_range: str
    share: str
    ever: str


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record that was set aside: when it came, why it was set aside, and where its bytes are."""

    arrived: str
    age: str
    reason: str
    message: str
    path: str
    where: str


@dataclass(frozen=True, slots=True)
class NameRow:
    """A name that is not declared: what it names, what may be meant, and the probe that sends under it."""

    name: str
    place: str
    nearest: str
    probe: str
    started: str
    records: str
    last: str


@dataclass(frozen=True, slots=True)
class StoppedRow:
    """A node: how many messages it saw, how many ended there, and how many wait there for a later try."""

    stream: str
    node: str
    seen: str
    rejected: str
    rejected_share: str
    filtered: str
    filtered_share: str
    deferred: str
    deferred_share: str
    is_bad: bool


@dataclass(frozen=True, slots=True)
class HoleRow:
    """Records that aged out of a partition before they were read."""

    place: str
    offsets: str
    records: str
    arrived: str


def build_reason_rows(quality: Quality) -> tuple[ReasonRow, ...]:
    """Return the reasons, those of most records in the range first."""
    total = sum(one.in_range for one in quality.reasons)
    return tuple(
        ReasonRow(
            one.name,
            MEANINGS.get(one.name, ""),
            texts.format_count(one.in_range),
            texts.format_percent(one.in_range, total),
            texts.format_count(one.ever),
        )
        for one in quality.reasons
    )


def build_record_rows(quality: Quality, now_us: int, zone: tzinfo) -> tuple[RecordRow, ...]:
    """Return the newest records set aside."""
    return tuple(_build_record_row(one, now_us, zone) for one in quality.newest)


def build_name_rows(quality: Quality, now_us: int, zone: tzinfo) -> tuple[NameRow, ...]:
    """Return the names that are not declared, those of most records first."""
    return tuple(_build_name_row(one, now_us, zone) for one in quality.undeclared)


def build_stopped_rows(quality: Quality) -> tuple[StoppedRow, ...]:
    """Return the nodes that stopped or kept messages, the most rejected first, in per cent of what each saw."""
    return tuple(_build_stopped_row(one) for one in quality.stopped)


def build_hole_rows(quality: Quality, zone: tzinfo) -> tuple[HoleRow, ...]:
    """Return the holes of the transport, the newest first."""
    return tuple(
        HoleRow(
            one.place,
            f"{one.first:,} to {one.last:,}",
            texts.format_count(one.last - one.first + 1),
            f"{texts.format_second(one.after_us, zone)} to {texts.format_second(one.before_us, zone)}",
        )
        for one in quality.holes
    )


def format_node_counts(quality: Quality) -> str:
    """Return how many nodes stopped or kept messages and how many did not, in a line."""
    others = quality.node_count - quality.stopped_count
    left_out = quality.stopped_count - len(quality.stopped)
    more = f" {left_out:,} more that stopped or kept fewer are not shown." if left_out else ""
    return f"{_count_nodes(quality.stopped_count)} stopped or kept messages, {others:,} did not.{more}"


def _count_nodes(count: int) -> str:
    return f"{count:,} {'node' if count == 1 else 'nodes'}"


def _build_name_row(one: UndeclaredName, now_us: int, zone: tzinfo) -> NameRow:
    is_node = one.reason == UNKNOWN_NODE
    place = f"a node of {one.stream}" if is_node else f"a stream, with the node {one.node}"
    if not one.stream:
        place = "nodes" if is_node else "streams"
    return NameRow(
        (one.node if is_node else one.stream) or f"all beyond {MAX_NAMES:,} names",
        place,
        one.nearest or texts.NONE,
        one.probe or texts.NONE,
        f"started {texts.format_second(one.epoch_us, zone)}" if one.stream else "",
        texts.format_count(one.records),
        f"{texts.format_age(now_us - one.last_arrival_us)} ago",
    )


def _build_record_row(one: SetAside, now_us: int, zone: tzinfo) -> RecordRow:
    message = one.message if len(one.message) <= MAX_TEXT else f"{one.message[:MAX_TEXT]}…"
    where = (
        f"position {texts.format_count(one.position)}, {texts.format_count(one.length)}"
        f" {'byte' if one.length == 1 else 'bytes'}"
    )
    arrived = texts.format_second(one.arrival_us, zone)
    return RecordRow(arrived, f"{texts.format_age(now_us - one.arrival_us)} ago", one.reason, message, one.path, where)


def _build_stopped_row(one: StoppedMessages) -> StoppedRow:
    return StoppedRow(
        one.stream,
        one.node,
        texts.format_count(one.seen),
        texts.format_count(one.rejected),
        texts.format_percent(one.rejected, one.seen),
        texts.format_count(one.filtered),
        texts.format_percent(one.filtered, one.seen),
        texts.format_count(one.deferred),
        texts.format_percent(one.deferred, one.seen),
        one.rejected > 0,
    )
