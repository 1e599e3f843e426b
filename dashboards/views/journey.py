"""A message's journey: what became of it in each window that it is of, and its stamps one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from hopwatch.dashboards.reading.search_told import Searched, Way
from hopwatch.dashboards.views import texts
from hopwatch.dashboards.views.colours import Mark
from hopwatch.monitor import bounds
from hopwatch.monitor.bounds import Part
from hopwatch.monitor.finding import Lost
from hopwatch.monitor.journey import Stamp, has_left, part_at
from hopwatch.monitor.kernel.naming import HASH_OF_A_TEXT
from hopwatch.monitor.printable import on_a_line
from hopwatch.monitor.results import WindowResult
from hopwatch.probes.contract.batch import Outcome, WireIdKind
from hopwatch.probes.contract.limits import WINDOW_US

MOST_WINDOWS: Final = 20
MOST_STAMPS: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

LOST: Final = Mark("LOST", "✕", "it was seen to leave one place, and surely not at the next", "lossy")
DELIVERED: Final = Mark("DELIVERED", "✓", "it left the end of the pathway", "clean")
FILTERED: Final = Mark("FILTERED", "○", "it was dropped on purpose", "idle")
REJECTED: Final = Mark("REJECTED", "○", "it was refused as bad", "idle")
IN_FLIGHT: Final = Mark("IN FLIGHT", "…", "its window is not judged yet", "pending")
UNKNOWN: Final = Mark("UNKNOWN", "?", "what is kept does not tell", "unknown")


@dataclass(frozen=True, slots=True)
class Key:
    """A message of a stream, and the window that it is of, by its start."""

    stream: str
    start_us: int
    message_id: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """A stamp in words, or where there is none and the message is missing: then ``side`` is empty.

    ``is_lost`` says that it is surely lost there.
    """

    node: str
    side: str
    when: str
    since_event: str
    since_before: str
    probe: str
    outcome: str
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Journey:
    """What became of a message: a mark, a sentence, its steps, how many are not shown, and until when stamps stay.

    ``shown`` is its id as it was given.
    It is missing at the nodes of ``lost_at``: surely lost, or not, and then ``reasons`` say why nobody knows.
    """

    key: Key
    shown: str
    mark: Mark
    told: str
    reasons: tuple[str, ...]
    lost_at: tuple[str, ...]
    steps: tuple[Step, ...]
    left_out: int
    kept: str


@dataclass(frozen=True, slots=True)
class _Moment:
    at_us: int | None
    lag_us: int | None
    place: int
    side: str
    stamp: Stamp


def keys(found: Searched, meant: Sequence[bytes]) -> tuple[Key, ...]:
    """Return the messages that were found, in the order of what was meant, and the windows of each, newest first."""
    rank = {message_id: place for place, message_id in enumerate(meant)}
    every = {_key(one) for one in found.stamps} | {_key_of(one) for one in found.lost}
    return tuple(sorted(every, key=lambda key: (rank.get(key.message_id, len(rank)), -key.start_us, key.stream)))


def of(found: Searched, key: Key, way: Way, now_us: int, zone: tzinfo) -> Journey:
    """Return the journey of a message in one window."""
    stamps = [one for one in found.stamps if _key(one) == key]
    of_it = [one for one in found.lost if _key_of(one) == key]
    lost_at = tuple(dict.fromkeys(one.node for one in of_it))
    moments = _in_order(stamps, way)
    mark, told = _fate(stamps, lost_at, way)
    steps = (*_steps(moments[:MOST_STAMPS], zone), *(_lost_step(node, stamps, way) for node in lost_at))
    left_out = max(0, len(moments) - MOST_STAMPS)
    reasons = way.window.reasons if way.window and lost_at and mark is UNKNOWN else ()
    shown = _shown(key, stamps, of_it, way)
    count = max((one.stamp_count or 0 for one in of_it), default=0)
    kept = _kept_with_its_id(count, len(stamps)) if count else _kept(way, now_us, zone, has_stamps=bool(stamps))
    return Journey(key, shown, mark, told, reasons, lost_at, steps, left_out, kept)


def _shown(key: Key, stamps: Sequence[Stamp], lost: Sequence[Lost], way: Way) -> str:
    """Return the id as the first node of the pathway gave it that says what it is; a text that is known before all."""
    places = {node: place for place, node in enumerate(way.graph.nodes)}
    said = sorted(
        (one for one in stamps if one.id_kind != WireIdKind.UNKNOWN),
        key=lambda one: (places.get(one.node, len(places)), one.id_kind),
    )
    told = [one.shown for one in said if not said or one.id_kind == said[0].id_kind]
    told += [one.shown for one in lost]
    known = [each for each in told if not each.endswith(HASH_OF_A_TEXT)]
    return on_a_line(next(iter((*known, *told)), key.message_id.hex()))


def _key(one: Stamp) -> Key:
    return Key(one.stream, one.event_time_us // WINDOW_US * WINDOW_US, one.message_id)


def _key_of(one: Lost) -> Key:
    return Key(one.stream, one.window_start_us, one.message_id)


def older(found: Sequence[Key]) -> str:
    """Return what to say of windows that are not shown; nothing if all are."""
    more = len(found) - MOST_WINDOWS
    return f"{more:,} older windows have messages of this id too." if more > 0 else ""


def nothing(text: str, found: Searched) -> str:
    """Return one line on a message of which nothing is kept."""
    searched = f"it is in none of the {found.segments:,} segments that are kept"
    if found.looked_into < found.segments:
        searched = f"it is in none of the {found.looked_into:,} segments that were looked into"
    where = "not among the lost ids" if found.trouble else f"{searched}, and not among the lost ids"
    return f"Nothing is kept of {text!r:.80}: {where}."


def partly(found: Searched) -> str:
    """Return what to say where not all segments were looked into; nothing where they were."""
    if found.trouble or found.looked_into >= found.segments:
        return ""
    told = f"Of {found.segments:,} segments that are kept the newest {found.looked_into:,} were looked into"
    return f"{told}, for as long as a page may take: hopwatch find looks into all."


def _fate(stamps: Sequence[Stamp], lost_at: Sequence[str], way: Way) -> tuple[Mark, str]:
    terminals = _terminals(way)
    ends = sorted({one.node for one in stamps if one.node in terminals and has_left(one, _sides(one.node, way))})
    if lost_at:
        also = f" It left {texts.listed(ends)}, another end of its way." if ends else ""
        told = "; ".join(_missing(node, stamps, way) for node in lost_at)
        is_sure = any(_is_surely_lost(node, way.window) for node in lost_at)
        return LOST if is_sure else UNKNOWN, f"{told[0].upper()}{told[1:]}.{also}"
    if ends:
        return DELIVERED, f"It left {' and '.join(ends)}, the end of its way."
    for outcome, mark in ((Outcome.REJECTED, REJECTED), (Outcome.FILTERED, FILTERED)):
        stopped = next((one for one in stamps if one.outcome == outcome.name.lower()), None)
        if stopped:
            why = f": {stopped.reason}" if stopped.reason else ""
            return mark, f"It was {stopped.outcome} at {stopped.node}{why}."
    return _untold(way.window)


def _untold(window: WindowResult | None) -> tuple[Mark, str]:
    """Return what to say of a message that neither arrived nor is kept as lost, by how its window stands."""
    if window is None:
        return UNKNOWN, "The store has no window of it, or has it no more: nobody judged what became of it."
    if not window.status.is_final:
        return IN_FLIGHT, "It has not left the end of its way, and its window is not judged yet."
    told = "No stamp that is kept shows it at the end of its way"
    return UNKNOWN, f"{told}, and it is not among the lost ids that are kept."


def _missing(node: str, stamps: Sequence[Stamp], way: Way) -> str:
    """Return what is known of a message that is missing at a node: that it is lost only if all that are missing are."""
    if _is_surely_lost(node, way.window):
        return f"lost {_where(node, stamps, way)}"
    return bounds.not_seen(node, *_loss(node, way.window), _part(node, stamps, way))


def _is_surely_lost(node: str, window: WindowResult | None) -> bool:
    loss, lower = _loss(node, window)
    return 0 < loss <= lower


def _loss(name: str, window: WindowResult | None) -> tuple[int, int]:
    """Return the loss of a node and its lower bound; of a window that is kept no more nothing is sure."""
    found = next((node for node in window.nodes if node.node == name), None) if window else None
    return (found.loss, found.loss_lower) if found else (0, 0)


def _where(node: str, stamps: Sequence[Stamp], way: Way) -> str:
    return {
        Part.AFTER: f"after {node}",
        Part.INSIDE: f"inside {node}",
        Part.ON_THE_WAY: f"on its way to {node}",
        Part.SOMEWHERE: f"at {node}",
    }[_part(node, stamps, way)]


def _part(node: str, stamps: Sequence[Stamp], way: Way) -> Part:
    return part_at(node, stamps, _sides(node, way))


def _sides(node: str, way: Way) -> str:
    return dict(zip(way.graph.nodes, way.sides, strict=False)).get(node, "both")


def _terminals(way: Way) -> set[str]:
    sources = {edge.source for edge in way.graph.edges}
    return {node for place, node in enumerate(way.graph.nodes) if place not in sources}


def _in_order(stamps: Sequence[Stamp], way: Way) -> list[_Moment]:
    """Return the stamps in the pathway's order, whatever their hosts' clocks say, in before out."""
    places = {node: place for place, node in enumerate(way.graph.nodes)}
    moments = []
    for one in stamps:
        sides: list[tuple[str, int | None]] = [("in", one.lag_in_us), ("out", one.lag_out_us)]
        for side, lag_us in [each for each in sides if each[1] is not None] or [("", None)]:
            at_us = None if lag_us is None else one.event_time_us + lag_us
            moments.append(_Moment(at_us, lag_us, places.get(one.node, len(places)), side, one))
    return sorted(moments, key=lambda one: (one.place, one.stamp.node, one.side, one.at_us or 0))


def _steps(moments: Sequence[_Moment], zone: tzinfo) -> list[Step]:
    steps, before_us = [], None
    for one in moments:
        since = texts.NONE if before_us is None or one.at_us is None else _signed(one.at_us - before_us)
        why = f": {one.stamp.reason}" if one.stamp.reason else ""
        when = texts.NONE if one.at_us is None else _instant(one.at_us, zone)
        outcome = f"{one.stamp.outcome}{why}"
        steps.append(Step(one.stamp.node, one.side, when, texts.span(one.lag_us), since, one.stamp.probe, outcome))
        before_us = before_us if one.at_us is None else one.at_us
    return steps


_NOT_SEEN: Final = {
    Part.ON_THE_WAY: "not seen",
    Part.INSIDE: "not seen leaving",
    Part.AFTER: "not seen behind it",
    Part.SOMEWHERE: "missing",
}


def _lost_step(node: str, stamps: Sequence[Stamp], way: Way) -> Step:
    none = texts.NONE
    is_lost = _is_surely_lost(node, way.window)
    told = f"lost {_where(node, stamps, way)}" if is_lost else _NOT_SEEN[_part(node, stamps, way)]
    return Step(node, "", none, none, none, "", told, is_lost=is_lost)


def _kept(way: Way, now_us: int, zone: tzinfo, *, has_stamps: bool) -> str:
    """Return until when stamps of the window stay, or that they are gone."""
    if way.kept_until_us is None:
        return "" if has_stamps else "No stamp of it is kept."
    until = texts.moment(way.kept_until_us, zone)
    if now_us > way.kept_until_us:
        return f"Stamps of this window were kept until {until}: {'some' if has_stamps else 'all'} may be gone."
    return f"Stamps of this window are kept until {until}."


def _kept_with_its_id(count: int, known: int) -> str:
    told = f"{known:,} of its {count:,} stamps" if known < count else "its stamps"
    return f"It is missing: {told} are kept as long as its window."


def _signed(span_us: int) -> str:
    return f"{texts.span(span_us)}, clocks differ" if span_us < 0 else f"+{texts.span(span_us)}"


def _instant(at_us: int, zone: tzinfo) -> str:
    """Return a moment to the millisecond."""
    try:
        there = (_EPOCH + timedelta(microseconds=at_us)).astimezone(zone)
    except OverflowError:
        return texts.moment(at_us, zone)
    return f"{there:%Y-%m-%d %H:%M:%S}.{there.microsecond // 1000:03d} {there.tzname()}"
