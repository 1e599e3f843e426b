"""Rows of the overview: one per stream, the worst first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hopwatch.dashboards.queries.models import StreamsOverview, StreamSummary, WindowSummary
from hopwatch.display import texts
from hopwatch.display.colours import NO_DATA, VERDICT_ORDER, Mark, select_mark
from hopwatch.monitor.results import NodeResult, Status, Verdict, WindowResult
from hopwatch.monitor.texts import loss_bounds
from hopwatch.probes.contract.limits import WINDOW_US

OLD_AFTER_US: Final = 600_000_000
"""Age, before the monitor's watermark, from which the newest final window of a stream is shown as old."""
SPARKLINE_WINDOWS: Final = 60


@dataclass(frozen=True, slots=True)
class SparklineBar:
    """A minute of the sparkline: how high, from 0 to 1, by the messages; and as what it is drawn."""

    height: float
    mark: Mark | None
    is_final: bool


@dataclass(frozen=True, slots=True)
class WorstWindow:
    """The worst minute of the last hour: how it is seen, what was surely lost in it as a part, and its start, µs."""

    mark: Mark
    loss_percent: str
    start_us: int


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A row of the overview: one stream."""

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
    bars: tuple[SparklineBar, ...]
    bars_said: str
    age: str
    is_old: bool
    worst: WorstWindow | None


def build_rows(standing: StreamsOverview, now_us: int) -> tuple[StreamRow, ...]:
    """Return the rows by the worst minute of their last hour, then by their newest, then by name."""
    streams = standing.listed_streams
    newest_us = max((one.last_us for one in streams if one.last_us is not None), default=0)
    reached_us = now_us if standing.watermark_us is None else standing.watermark_us
    is_once = standing.watermark_us is None
    found = [(one, _build_row(one, now_us, reached_us, newest_us, is_once)) for one in streams]
    ordered = sorted(found, key=lambda each: (_sort_key(*each), each[0].stream))
    return tuple(row for _, row in ordered)


def format_summary(shown: Iterable[StreamRow], of_streams: int) -> str:
    """Return how many streams are shown of each verdict, in a line, and of how many where they are not all."""
    marks = [row.mark for row in shown]
    counted = {one.word: marks.count(one) for one in (*(select_mark(verdict) for verdict in VERDICT_ORDER), NO_DATA)}
    told = ", ".join(f"{number:,} {word}" for word, number in counted.items() if number)
    whole = f" of {of_streams:,}" if len(marks) < of_streams else ""
    many = f"{len(marks):,}{whole} {'stream' if of_streams == 1 else 'streams'}"
    return f"{many}: {told}" if told else many


def _sort_key(one: StreamSummary, row: StreamRow) -> tuple[float, float, float]:
    """Return how soon a stream is to be looked at: by its worst minute, how much that lost, and its newest."""
    verdict = one.newest.verdict if one.newest else None
    rank: float = len(VERDICT_ORDER) if verdict is None else VERDICT_ORDER.index(verdict)
    # What was well long ago is not as well as what is.
    newest = min(rank, VERDICT_ORDER.index(Verdict.CLEAN) - 0.5) if row.is_old else rank
    worst = _find_worst(one.recent_windows)
    if worst is None or worst.verdict is None:
        return newest, 0.0, newest
    return min(newest, VERDICT_ORDER.index(worst.verdict)), -_compute_loss_ratio(worst), newest


def _find_worst(lately: Iterable[WindowSummary]) -> WindowSummary | None:
    """Return the worst final minute of some, of those that are as bad the newest."""
    judged = (one for one in lately if one.status.is_final and one.verdict is not None)
    return min(
        judged,
        key=lambda one: (VERDICT_ORDER.index(one.verdict or Verdict.IDLE), -_compute_loss_ratio(one), -one.start_us),
        default=None,
    )


def _compute_loss_ratio(minute: WindowSummary) -> float:
    """Return what was surely lost, as a part of the known."""
    return minute.lost_lower / minute.known if minute.known else 0.0


def _build_worst(lately: Iterable[WindowSummary]) -> WorstWindow | None:
    worst = _find_worst(lately)
    if worst is None:
        return None
    lost = texts.format_percent(worst.lost_lower, worst.known) if worst.lost_lower else ""
    return WorstWindow(select_mark(worst.verdict, worst.status), lost, worst.start_us)


def _build_row(one: StreamSummary, now_us: int, reached_us: int, newest_us: int, is_once: bool) -> StreamRow:  # noqa: FBT001 - a fact
    newest = one.newest
    bars = _build_bars(one.recent_windows, newest_us)
    told = {
        "bars": bars,
        "bars_said": _describe_bars(one.recent_windows),
        "stream": one.stream,
        "worst": _build_worst(one.recent_windows),
    }
    if newest is None:
        nothing = dict.fromkeys(("loss_ppm", "loss_percent", "lag", "rate", "coverage", "age"), texts.NONE)
        waits = "no window is final yet" if one.last_us is not None else "nothing came yet"
        return StreamRow(**told, **nothing, mark=NO_DATA, reasons=(), loss_note=waits, coverage_note="", is_old=False)  # type: ignore[arg-type]  # each of its own type
    ended_us = newest.window_start_us + WINDOW_US
    ppm, percent, note = format_loss(newest)
    coverage, coverage_note = _format_coverage(newest.nodes)
    return StreamRow(
        **told,  # type: ignore[arg-type]  # each of its own type
        mark=select_mark(newest.verdict, newest.status),
        reasons=newest.reasons,
        loss_ppm=ppm,
        loss_percent=percent,
        loss_note=note,
        lag=texts.format_lag(newest.lag_us.p95 if newest.lag_us else None),
        rate=texts.NONE if newest.verdict is Verdict.SILENT else f"{texts.format_count(newest.known)} /min",
        coverage=coverage,
        coverage_note=coverage_note,
        age=texts.format_age(now_us - ended_us),
        is_old=not is_once and reached_us - ended_us > OLD_AFTER_US,
    )


def format_loss(result: WindowResult) -> tuple[str, str, str]:
    """Return what was surely lost, in ppm and per cent, and what more there may be; of what is unknown never 0."""
    surely = texts.format_ppm(result.lost_lower, result.known), texts.format_percent(result.lost_lower, result.known)
    if loss_bounds.is_unknown(result.lost_lower, result.lost_upper):
        return texts.UNKNOWN, "unknown", _format_upper(result)
    if result.lost_upper != result.lost_lower:
        return f"≥ {surely[0]}", f"≥ {surely[1]}", _format_upper(result)
    return *surely, ""


def _format_upper(result: WindowResult) -> str:
    if result.lost_upper is None:
        return "no upper bound"
    return f"at most {texts.format_percent(result.lost_upper, result.known)}" if result.known else ""


def _format_coverage(nodes: tuple[NodeResult, ...]) -> tuple[str, str]:
    """Return the lowest coverage of the nodes that have one, and how many have none or not all."""
    known = [node.coverage for node in nodes if node.coverage is not None]
    partly = sum(node.coverage != 1 for node in nodes)
    note = f"{partly:,} of {len(nodes):,} nodes not complete" if partly else "all nodes"
    return (texts.format_ratio(min(known)) if known else texts.NONE), note


def _build_bars(lately: tuple[WindowSummary, ...], newest_us: int) -> tuple[SparklineBar, ...]:
    """Return a bar a minute of the hour up to the newest window of all; a minute without a window has no mark.

    Nor has one that still receives: it would be drawn as a collapse.
    """
    found = {minute.start_us: minute for minute in lately if minute.status is not Status.OPEN}
    most = max((minute.known for minute in found.values()), default=0) or 1
    starts = range(newest_us - (SPARKLINE_WINDOWS - 1) * WINDOW_US, newest_us + 1, WINDOW_US)
    return tuple(_build_bar(found.get(start_us), most) for start_us in starts)


def _build_bar(minute: WindowSummary | None, most: int) -> SparklineBar:
    if minute is None:
        return SparklineBar(0.0, None, is_final=True)
    return SparklineBar(minute.known / most, select_mark(minute.verdict, minute.status), minute.status.is_final)


def _describe_bars(lately: tuple[WindowSummary, ...]) -> str:
    """Return the sparkline in words."""
    words = [select_mark(minute.verdict, minute.status).word for minute in lately]
    told = ", ".join(f"{words.count(word):,} {word}" for word in dict.fromkeys(words))
    return f"messages a minute of the last hour; windows: {told}" if told else "no window in the last hour"
