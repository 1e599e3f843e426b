"""What was measured, drawn for a person; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.growth import Growth
from bench.kafka import Through
from bench.live import Span
from bench.outage import Outage
from bench.outliers import GOAL_BYTES, GOAL_MINUTE_S, GOAL_POINT_US, SERIES, Detector
from bench.probing import Cost
from bench.speed import ONCE_WARM, STREAM, Line

NONE: Final = "-"


def speed(lines: Sequence[Line], observations: int) -> Group:
    """Return the contestants and what each includes; a ratio is our rate over that of a line, below 1 it is ahead."""
    rates = {line.who: line.rate for line in lines}
    table = _table(
        f"Speed: {observations:,} observations, 2 cores, every result checked",
        ("contestant",),
        ("s", "M obs/s", "stream / this", "--once warm / this", "memory GB", "of it files", "disk B/obs",
         "input B/obs"),
    )  # fmt: skip
    for line in lines:
        table.add_row(
            line.who,
            _number(line.seconds, 1),
            _number(line.rate / 1e6, 3),
            *(_number(rates[ours] / line.rate, 2) for ours in (STREAM, ONCE_WARM)),
            *(_number(_over(amount, 1e9), 2) for amount in (line.memory_bytes, line.mapped_bytes)),
            *(_number(_over(amount, observations), 1) for amount in (line.disk_bytes, line.input_bytes)),
        )
    return Group(table, *(Text(f"{line.who}: {line.includes}") for line in lines))


def probes(costs: Sequence[Cost]) -> Table:
    """Return the cost of each call."""
    table = _table("Probes: a call, median of all rounds", ("who", "call"), ("ns", "goal, ns", "CPU ns, all threads"))
    for cost in costs:
        numbers = (_number(number, 0) for number in (cost.ns, cost.goal_ns, cost.cpu_ns))
        table.add_row(cost.who, cost.call, *numbers)
    return table


def live(spans: Sequence[Span]) -> Table:
    """Return what took how long."""
    table = _table("Live", ("what",), ("median s", "most s", "goal, s", "measured"))
    for span in spans:
        numbers = (median(span.took_s), max(span.took_s), span.goal_s)
        table.add_row(span.what, *(_number(number, 2) for number in numbers), str(len(span.took_s)))
    return table


def growth(lines: Sequence[Growth]) -> Table:
    """Return what each work took."""
    table = _table(
        "Growth: --once warm, then the stream, in one session; every result checked",
        (),
        ("observations", "streams", "batch", "--once s", "M obs/s", "stream s", "M obs/s", "2nd trigger on, M obs/s",
         "memory GB"),
    )  # fmt: skip
    for line in lines:
        table.add_row(
            *(f"{count:,}" for count in (line.observations, line.streams, line.batch)),
            _number(line.once_s, 1),
            _number(line.once_rate / 1e6, 3),
            _number(line.stream_s, 1),
            _number(line.stream_rate / 1e6, 3),
            _number(_over(line.steady_rate, 1e6), 3),
            _number(line.memory_bytes / 1e9, 2),
        )
    return table


def kafka(lines: Sequence[Through]) -> Table:
    """Return what went through the broker."""
    table = _table(
        "Kafka: one broker on the same 2 cores, every result checked",
        ("what",),
        ("M obs/s", "goal, M obs/s", "MB/s", "B/obs", "memory GB"),
    )
    for line in lines:
        table.add_row(
            line.what,
            _number(line.rate / 1e6, 2),
            _number(_over(line.goal_rate, 1e6), 1),
            _number(line.bytes_rate / 1e6, 1),
            _number(line.bytes_an_observation, 1),
            _number(_over(line.memory_bytes, 1e9), 2),
        )
    return table


def outage(lines: Sequence[Outage]) -> Table:
    """Return what a call costs while no broker answers."""
    table = _table(
        "No broker answers: every call timed by itself, every stamp counted as dropped",
        (),
        ("calls", "p50 µs", "p99 µs", "goal, p99 µs", "most ms", "memory grown, MB", "of it queue, at most MB"),
    )
    for line in lines:
        table.add_row(
            f"{line.calls:,}",
            *(_number(span_us, 2) for span_us in (line.p50_us, line.p99_us, line.goal_us)),
            _number(line.most_us / 1e3, 1),
            *(_number(amount / 1e6, 1) for amount in (line.grown_bytes, line.queue_bytes)),
        )
    return table


def outliers(lines: Sequence[Detector]) -> Group:
    """Return what each detector costs and what it includes."""
    table = _table(
        f"Outliers: one series in batch, a minute of {SERIES:,} series, 2 cores",
        ("detector",),
        ("µs a point", "s a minute", "timed with, series", "bytes a series"),
    )
    for line in lines:
        numbers = (_number(line.point_us, 1), _number(line.minute_s, 2))
        table.add_row(line.who, *numbers, f"{line.timed_series:,}", _number(line.state_bytes, 0))
    goals = (_number(GOAL_POINT_US, 1), _number(GOAL_MINUTE_S, 2))
    table.add_row("goal", *goals, f"{SERIES:,}", _number(GOAL_BYTES, 0))
    return Group(table, *(Text(f"{line.who}: {line.includes}") for line in lines))


def _table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in words:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _over(amount: float | None, unit: float) -> float | None:
    return None if amount is None else amount / unit


def _number(number: float | None, digits: int) -> str:
    return NONE if number is None else f"{number:,.{digits}f}"
