"""Journey of a message: its stamps in pathway order, and its outcome in each window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from hopwatch.dashboards.queries.search_models import MessagePath, SearchResult
from hopwatch.display import texts
from hopwatch.display.colours import Mark
from hopwatch.monitor.kernel.naming import HASH_SUFFIX
from hopwatch.monitor.lookup.journey import MessageStamp, find_part_at, has_left
from hopwatch.monitor.lookup.missing_messages import MissingMessage
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.monitor.texts.loss_bounds import LossPart
from hopwatch.probes.contract.batch import Outcome, WireIdKind
from hopwatch.probes.contract.limits import WINDOW_US

MAX_WINDOWS: Final = 20
MAX_STAMPS: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

LOST: Final = Mark("LOST", "✕", "it was seen to leave one place, and surely not at the next", "lossy")
DELIVERED: Final = Mark("DELIVERED", "✓", "it left the end of the pathway", "clean")
FILTERED: Final = Mark("FILTERED", "○", "it was dropped on purpose", "idle")
REJECTED: Final = Mark("REJECTED", "○", "it was refused as bad", "idle")
IN_FLIGHT: Final = Mark("IN FLIGHT", "…", "its window is not judged yet", "pending")
UNKNOWN: Final = Mark("UNKNOWN", "?", "the stored records do not show it", "unknown")


@dataclass(frozen=True, slots=True)
class JourneyKey:
    """A message of a stream, and the window that it is of, by its start."""

    stream: str
    start_us: int
    message_id: bytes


@dataclass(frozen=True, slots=True)
class JourneyStep:
    """A stamp in words, or where there is none and the message is missing: then ``side`` is empty.

    ``is_lost`` says that it is surely lost there.
    """

    node: str
    side: str
    when: str
    since_event: str
    since_previous: str
    probe: str
    outcome: str
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Journey:
    """Path of one message: a mark, a sentence, its steps, how many are not shown, and until when stamps are kept.

    ``id_text`` is its id as it was given.
    It is missing at the nodes of ``lost_at``: surely lost, or else ``reasons`` say why that is unknown.
    """

    key: JourneyKey
    id_text: str
    mark: Mark
    summary: str
    reasons: tuple[str, ...]
    lost_at: tuple[str, ...]
    steps: tuple[JourneyStep, ...]
    left_out: int
    retention: str


@dataclass(frozen=True, slots=True)
class _TimedStamp:
    at_us: int | None
    lag_us: int | None
    place: int
    side: str
    stamp: MessageStamp


def list_keys(found: SearchResult, meant: Sequence[bytes]) -> tuple[JourneyKey, ...]:
    """Return the messages that were found, in the order of what was meant, and the windows of each, newest first."""
    rank = {message_id: place for place, message_id in enumerate(meant)}
    every = {_stamp_key(one) for one in found.stamps} | {_lost_key(one) for one in found.lost}
    return tuple(sorted(every, key=lambda key: (rank.get(key.message_id, len(rank)), -key.start_us, key.stream)))


def build_journey(found: SearchResult, key: JourneyKey, way: MessagePath, now_us: int, zone: tzinfo) -> Journey:
    """Return the journey of a message in one window."""
    stamps = [one for one in found.stamps if _stamp_key(one) == key]
    of_it = [one for one in found.lost if _lost_key(one) == key]
    lost_at = tuple(dict.fromkeys(one.node for one in of_it))
    moments = _sort_stamps(stamps, way)
    mark, told = _conclude(stamps, lost_at, way)
    steps = (*_build_steps(moments[:MAX_STAMPS], zone), *(_build_lost_step(node, stamps, way) for node in lost_at))
    left_out = max(0, len(moments) - MAX_STAMPS)
    reasons = way.window.reasons if way.window and lost_at and mark is UNKNOWN else ()
    shown = _format_id(key, stamps, of_it, way)
    count = max((one.stamp_count or 0 for one in of_it), default=0)
    kept = (
        _format_lost_retention(count, len(stamps))
        if count
        else _format_retention(way, now_us, zone, has_stamps=bool(stamps))
    )
    return Journey(key, shown, mark, told, reasons, lost_at, steps, left_out, kept)


def _format_id(
    key: JourneyKey, stamps: Sequence[MessageStamp], lost: Sequence[MissingMessage], way: MessagePath
) -> str:
    """Return the id as the first node of the pathway gave it that says what it is; a text that is known before all."""
    places = {node: place for place, node in enumerate(way.graph.nodes)}
    said = sorted(
        (one for one in stamps if one.id_kind != WireIdKind.UNKNOWN),
        key=lambda one: (places.get(one.node, len(places)), one.id_kind),
    )
    told = [one.shown for one in said if not said or one.id_kind == said[0].id_kind]
    told += [one.shown for one in lost]
    known = [each for each in told if not each.endswith(HASH_SUFFIX)]
    return escape_line(next(iter((*known, *told)), key.message_id.hex()))


def _stamp_key(one: MessageStamp) -> JourneyKey:
    return JourneyKey(one.stream, one.event_time_us // WINDOW_US * WINDOW_US, one.message_id)


def _lost_key(one: MissingMessage) -> JourneyKey:
    return JourneyKey(one.stream, one.window_start_us, one.message_id)


def format_older(found: Sequence[JourneyKey]) -> str:
    """Return what to say of windows that are not shown; nothing if all are."""
    more = len(found) - MAX_WINDOWS
    return f"{more:,} older windows have messages of this id too." if more > 0 else ""


def format_nothing_found(text: str, found: SearchResult) -> str:
    """Return one line on a message without any record."""
    searched = f"it is in none of the {found.segments:,} segments that are kept"
    if found.searched_segments < found.segments:
        searched = f"it is in none of the {found.searched_segments:,} segments that were searched"
    where = "not among the lost ids" if found.errors else f"{searched}, and not among the lost ids"
    return f"Nothing is kept of {text!r:.80}: {where}."


def format_partial_search(found: SearchResult) -> str:
    """Return what to say where not all segments were looked into; nothing where they were."""
    if found.errors or found.searched_segments >= found.segments:
        return ""
    told = f"Of {found.segments:,} stored segments the newest {found.searched_segments:,} were searched"
    return f"{told}, within a page's time limit: hopwatch find searches all."


def _conclude(stamps: Sequence[MessageStamp], lost_at: Sequence[str], way: MessagePath) -> tuple[Mark, str]:
    terminals = _list_terminals(way)
    ends = sorted({one.node for one in stamps if one.node in terminals and has_left(one, _read_sides(one.node, way))})
    if lost_at:
        also = f" It left {texts.join_words(ends)}, another end of its way." if ends else ""
        told = "; ".join(_format_missing(node, stamps, way) for node in lost_at)
        is_sure = any(_is_surely_lost(node, way.window) for node in lost_at)
        return LOST if is_sure else UNKNOWN, f"{told[0].upper()}{told[1:]}.{also}"
    if ends:
        return DELIVERED, f"It left {' and '.join(ends)}, the end of its way."
    for outcome, mark in ((Outcome.REJECTED, REJECTED), (Outcome.FILTERED, FILTERED)):
        stopped = next((one for one in stamps if one.outcome == outcome.name.lower()), None)
        if stopped:
            why = f": {stopped.reason}" if stopped.reason else ""
            return mark, f"It was {stopped.outcome} at {stopped.node}{why}."
    return _conclude_without_stamps(way.window)


def _conclude_without_stamps(window: WindowResult | None) -> tuple[Mark, str]:
    """Return what to say of a message that neither arrived nor is kept as lost, by how its window stands."""
    if window is None:
        return UNKNOWN, "The store has no window of it, or no longer has it: there is no verdict on it."
    if not window.status.is_final:
        return IN_FLIGHT, "It has not left the end of its way, and its window is not judged yet."
    told = "No stamp that is kept shows it at the end of its way"
    return UNKNOWN, f"{told}, and it is not among the lost ids that are kept."


def _format_missing(node: str, stamps: Sequence[MessageStamp], way: MessagePath) -> str:
    """Return what is known of a message that is missing at a node: that it is lost only if all that are missing are."""
    if _is_surely_lost(node, way.window):
        return f"lost {_format_place(node, stamps, way)}"
    return loss_bounds.describe_missing(node, *_read_loss(node, way.window), _locate_loss(node, stamps, way))


def _is_surely_lost(node: str, window: WindowResult | None) -> bool:
    loss, lower = _read_loss(node, window)
    return 0 < loss <= lower


def _read_loss(name: str, window: WindowResult | None) -> tuple[int, int]:
    """Return the loss of a node and its lower bound; of a window that is kept no more nothing is sure."""
    found = next((node for node in window.nodes if node.node == name), None) if window else None
    return (found.loss, found.loss_lower) if found else (0, 0)


def _format_place(node: str, stamps: Sequence[MessageStamp], way: MessagePath) -> str:
    return {
        LossPart.AFTER: f"after {node}",
        LossPart.INSIDE: f"inside {node}",
        LossPart.ON_THE_WAY: f"on its way to {node}",
        LossPart.SOMEWHERE: f"at {node}",
    }[_locate_loss(node, stamps, way)]


def _locate_loss(node: str, stamps: Sequence[MessageStamp], way: MessagePath) -> LossPart:
    return find_part_at(node, stamps, _read_sides(node, way))


def _read_sides(node: str, way: MessagePath) -> str:
    return dict(zip(way.graph.nodes, way.sides, strict=False)).get(node, "both")


def _list_terminals(way: MessagePath) -> set[str]:
    sources = {edge.source for edge in way.graph.edges}
    return {node for place, node in enumerate(way.graph.nodes) if place not in sources}


def _sort_stamps(stamps: Sequence[MessageStamp], way: MessagePath) -> list[_TimedStamp]:
    """Return the stamps in the pathway's order, whatever their hosts' clocks say, in before out."""
    places = {node: place for place, node in enumerate(way.graph.nodes)}
    moments = []
    for one in stamps:
        sides: list[tuple[str, int | None]] = [("in", one.lag_in_us), ("out", one.lag_out_us)]
        for side, lag_us in [each for each in sides if each[1] is not None] or [("", None)]:
            at_us = None if lag_us is None else one.event_time_us + lag_us
            moments.append(_TimedStamp(at_us, lag_us, places.get(one.node, len(places)), side, one))
    return sorted(moments, key=lambda one: (one.place, one.stamp.node, one.side, one.at_us or 0))


def _build_steps(moments: Sequence[_TimedStamp], zone: tzinfo) -> list[JourneyStep]:
    steps, before_us = [], None
    for one in moments:
        since = texts.NONE if before_us is None or one.at_us is None else _format_signed(one.at_us - before_us)
        why = f": {one.stamp.reason}" if one.stamp.reason else ""
        when = texts.NONE if one.at_us is None else _format_instant(one.at_us, zone)
        outcome = f"{one.stamp.outcome}{why}"
        steps.append(
            JourneyStep(one.stamp.node, one.side, when, texts.format_lag(one.lag_us), since, one.stamp.probe, outcome)
        )
        before_us = before_us if one.at_us is None else one.at_us
    return steps


_NOT_SEEN_TEXTS: Final = {
    LossPart.ON_THE_WAY: "not seen",
    LossPart.INSIDE: "not seen leaving",
    LossPart.AFTER: "not seen behind it",
    LossPart.SOMEWHERE: "missing",
}


def _build_lost_step(node: str, stamps: Sequence[MessageStamp], way: MessagePath) -> JourneyStep:
    none = texts.NONE
    is_lost = _is_surely_lost(node, way.window)
    told = f"lost {_format_place(node, stamps, way)}" if is_lost else _NOT_SEEN_TEXTS[_locate_loss(node, stamps, way)]
    return JourneyStep(node, "", none, none, none, "", told, is_lost=is_lost)


def _format_retention(way: MessagePath, now_us: int, zone: tzinfo, *, has_stamps: bool) -> str:
    """Return until when stamps of the window stay, or that they are gone."""
    if way.kept_until_us is None:
        return "" if has_stamps else "No stamp of it is kept."
    until = texts.format_moment(way.kept_until_us, zone)
    if now_us > way.kept_until_us:
        return f"Stamps of this window were kept until {until}: {'some' if has_stamps else 'all'} may be gone."
    return f"Stamps of this window are kept until {until}."


def _format_lost_retention(count: int, known: int) -> str:
    told = f"{known:,} of its {count:,} stamps" if known < count else "its stamps"
    return f"It is missing: {told} are kept as long as its window."


def _format_signed(span_us: int) -> str:
    return f"{texts.format_lag(span_us)}, clocks differ" if span_us < 0 else f"+{texts.format_lag(span_us)}"


def _format_instant(at_us: int, zone: tzinfo) -> str:
    """Return a moment to the millisecond."""
    try:
        there = (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone)
    except OverflowError:
        return texts.format_moment(at_us, zone)
    return f"{there:%Y-%m-%d %H:%M:%S}.{there.microsecond // 1000:03d} {there.tzname()}"
