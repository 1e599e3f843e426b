"""The overview: one row a stream, those that need a person first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.reading.told import Minute, Standing, StreamNow
from hopwatch.dashboards.views import texts
from hopwatch.dashboards.views.colours import NOTHING, ORDER, Mark, mark
from hopwatch.monitor.results import NodeResult, Status, Verdict, WindowResult
from hopwatch.monitor.texts import loss_bounds
from hopwatch.probes.contract.limits import WINDOW_US

OLD_US: Final = 600_000_000
"""A stream whose newest final window ended so long before what the monitor has read is told as old."""
MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class Bar:
    """A minute of the sparkline: how high, from 0 to 1, by the messages; and as what it is drawn."""

    height: float
    mark: Mark | None
    is_final: bool


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst minute of the last hour: how it is seen, what was surely lost in it as a part, and its start, µs."""

    mark: Mark
    loss_percent: str
    start_us: int


@dataclass(frozen=True, slots=True)
class Row:
    """A stream as the overview tells it."""

    stream: str
    mark: Mark
    reasons: tuple[str, ...]
    loss_ppm: str
    loss_percent: str
    loss_note: str
    lag: str
    rate: str
    coverage: str
    coverage_note: str
    bars: tuple[Bar, ...]
    bars_said: str
    age: str
    is_old: bool
    worst: Worst | None


def rows(standing: Standing, now_us: int) -> tuple[Row, ...]:
    """Return the rows by the worst minute of their last hour, then by their newest, then by name."""
    newest_us = max((one.last_us for one in standing.streams if one.last_us is not None), default=0)
    reached_us = now_us if standing.watermark_us is None else standing.watermark_us
    is_once = standing.watermark_us is None
    found = [(one, _row(one, now_us, reached_us, newest_us, is_once)) for one in standing.streams]
    ordered = sorted(found, key=lambda each: (_rank(*each), each[0].stream))
    return tuple(row for _, row in ordered)


def summary(shown: Iterable[Row]) -> str:
    """Return how many streams there are of each verdict, in a line."""
    marks = [row.mark for row in shown]
    counted = {one.word: marks.count(one) for one in (*(mark(verdict) for verdict in ORDER), NOTHING)}
    told = ", ".join(f"{number:,} {word}" for word, number in counted.items() if number)
    return f"{len(marks):,} {'stream' if len(marks) == 1 else 'streams'}: {told}"


def _rank(one: StreamNow, row: Row) -> tuple[float, float, float]:
    """Return how soon a stream is to be looked at: by its worst minute, how much that lost, and its newest."""
    verdict = one.newest.verdict if one.newest else None
    rank: float = len(ORDER) if verdict is None else ORDER.index(verdict)
    # What was well long ago is not as well as what is.
    newest = min(rank, ORDER.index(Verdict.CLEAN) - 0.5) if row.is_old else rank
    worst = _worst(one.lately)
    if worst is None or worst.verdict is None:
        return newest, 0.0, newest
    return min(newest, ORDER.index(worst.verdict)), -_part(worst), newest


def _worst(lately: Iterable[Minute]) -> Minute | None:
    """Return the worst final minute of some, of those that are as bad the newest."""
    judged = (one for one in lately if one.status.is_final and one.verdict is not None)
    return min(
        judged, key=lambda one: (ORDER.index(one.verdict or Verdict.IDLE), -_part(one), -one.start_us), default=None
    )


def _part(minute: Minute) -> float:
    """Return what was surely lost, as a part of the known."""
    return minute.lost_lower / minute.known if minute.known else 0.0


def _worst_shown(lately: Iterable[Minute]) -> Worst | None:
    worst = _worst(lately)
    if worst is None:
        return None
    lost = texts.percent(worst.lost_lower, worst.known) if worst.lost_lower else ""
    return Worst(mark(worst.verdict, worst.status), lost, worst.start_us)


def _row(one: StreamNow, now_us: int, reached_us: int, newest_us: int, is_once: bool) -> Row:  # noqa: FBT001 - a fact
    newest = one.newest
    bars = _bars(one.lately, newest_us)
    told = {"bars": bars, "bars_said": _said(one.lately), "stream": one.stream, "worst": _worst_shown(one.lately)}
    if newest is None:
        nothing = dict.fromkeys(("loss_ppm", "loss_percent", "lag", "rate", "coverage", "age"), texts.NONE)
        waits = "no window is final yet" if one.last_us is not None else "nothing came yet"
        return Row(**told, **nothing, mark=NOTHING, reasons=(), loss_note=waits, coverage_note="", is_old=False)  # type: ignore[arg-type]  # each of its own type
    ended_us = newest.window_start_us + WINDOW_US
    ppm, percent, note = loss(newest)
    coverage, coverage_note = _coverage(newest.nodes)
    return Row(
        **told,  # type: ignore[arg-type]  # each of its own type
        mark=mark(newest.verdict, newest.status),
        reasons=newest.reasons,
        loss_ppm=ppm,
        loss_percent=percent,
        loss_note=note,
        lag=texts.span(newest.lag_us.p95 if newest.lag_us else None),
        rate=texts.NONE if newest.verdict is Verdict.SILENT else f"{texts.count(newest.known)} /min",
        coverage=coverage,
        coverage_note=coverage_note,
        age=texts.age(now_us - ended_us),
        is_old=not is_once and reached_us - ended_us > OLD_US,
    )


def loss(result: WindowResult) -> tuple[str, str, str]:
    """Return what was surely lost, in ppm and per cent, and what more there may be; of what is unknown never 0."""
    surely = texts.ppm(result.lost_lower, result.known), texts.percent(result.lost_lower, result.known)
    if loss_bounds.is_unknown(result.lost_lower, result.lost_upper):
        return texts.UNKNOWN, "unknown", _at_most(result)
    if result.lost_upper != result.lost_lower:
        return f"≥ {surely[0]}", f"≥ {surely[1]}", _at_most(result)
    return *surely, ""


def _at_most(result: WindowResult) -> str:
    if result.lost_upper is None:
        return "no upper bound"
    return f"at most {texts.percent(result.lost_upper, result.known)}" if result.known else ""


def _coverage(nodes: tuple[NodeResult, ...]) -> tuple[str, str]:
    """Return the lowest coverage of the nodes that have one, and how many have none or not all."""
    known = [node.coverage for node in nodes if node.coverage is not None]
    partly = sum(node.coverage != 1 for node in nodes)
    note = f"{partly:,} of {len(nodes):,} nodes not complete" if partly else "all nodes"
    return (texts.ratio(min(known)) if known else texts.NONE), note


def _bars(lately: tuple[Minute, ...], newest_us: int) -> tuple[Bar, ...]:
    """Return a bar a minute of the hour up to the newest window of all; a minute without a window has no mark.

    Nor has one that still receives: it would be drawn as a collapse.
    """
    found = {minute.start_us: minute for minute in lately if minute.status is not Status.OPEN}
    most = max((minute.known for minute in found.values()), default=0) or 1
    starts = range(newest_us - (MINUTES - 1) * WINDOW_US, newest_us + 1, WINDOW_US)
    return tuple(_bar(found.get(start_us), most) for start_us in starts)


def _bar(minute: Minute | None, most: int) -> Bar:
    if minute is None:
        return Bar(0.0, None, is_final=True)
    return Bar(minute.known / most, mark(minute.verdict, minute.status), minute.status.is_final)


def _said(lately: tuple[Minute, ...]) -> str:
    """Return the sparkline in words."""
    words = [mark(minute.verdict, minute.status).word for minute in lately]
    told = ", ".join(f"{words.count(word):,} {word}" for word in dict.fromkeys(words))
    return f"messages a minute of the last hour; windows: {told}" if told else "no window in the last hour"
