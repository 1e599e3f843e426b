"""Tables of the figures; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bench.growth import Growth
from bench.kafka import KafkaThroughput
from bench.live import TimeSpan
from bench.outage import Outage
from bench.scale import ScalingRun
from bench.soak import Trend
from bench.speed import ONCE_WARM, STREAM, SpeedLine
from bench.stamp_cost import Cost
from bench.table_style import format_number, format_ratio, new_table

BAR_WIDTH: Final = 24
"""Characters of the longest bar of a curve."""


def speed(lines: Sequence[SpeedLine], observations: int) -> Group:
    """Return the contestants and what each includes; a ratio is our rate over that of a line, below 1 it is ahead."""
    rates = {line.who: line.rate for line in lines}
    table = new_table(
        f"Speed: {observations:,} observations, 2 cores, every result checked",
        ("contestant",),
        ("s", "M obs/s", "stream / this", "--once warm / this", "memory GB", "of it files", "disk B/obs",
         "input B/obs"),
    )  # fmt: skip
    for line in lines:
        table.add_row(
            line.who,
            format_number(line.seconds, 1),
            format_number(line.rate / 1e6, 3),
            *(format_number(rates[ours] / line.rate, 2) for ours in (STREAM, ONCE_WARM)),
            *(format_number(format_ratio(amount, 1e9), 2) for amount in (line.memory_bytes, line.mapped_bytes)),
            *(format_number(format_ratio(amount, observations), 1) for amount in (line.disk_bytes, line.input_bytes)),
        )
    return Group(table, *(Text(f"{line.who}: {line.includes}") for line in lines))


def probes(costs: Sequence[Cost]) -> Table:
    """Return the cost of each call."""
    table = new_table(
        "Probes: a call, median of all rounds", ("who", "call"), ("ns", "goal, ns", "CPU ns, all threads")
    )
    for cost in costs:
        numbers = (format_number(number, 0) for number in (cost.ns, cost.goal_ns, cost.cpu_ns))
        table.add_row(cost.who, cost.call, *numbers)
    return table


def live(spans: Sequence[TimeSpan]) -> Table:
    """Return what took how long."""
    table = new_table("Live", ("what",), ("median s", "most s", "goal, s", "measured"))
    for span in spans:
        numbers = (median(span.took_s), max(span.took_s), span.goal_s)
        table.add_row(span.what, *(format_number(number, 2) for number in numbers), str(len(span.took_s)))
    return table


def growth(lines: Sequence[Growth]) -> Table:
    """Return what each work took."""
    table = new_table(
        "Growth: --once warm, then the stream, in one session; every result checked",
        (),
        ("observations", "streams", "batch", "--once s", "M obs/s", "stream s", "M obs/s", "2nd trigger on, M obs/s",
         "memory GB"),
    )  # fmt: skip
    for line in lines:
        table.add_row(
            *(f"{count:,}" for count in (line.observations, line.streams, line.batch)),
            format_number(line.once_s, 1),
            format_number(line.once_rate / 1e6, 3),
            format_number(line.stream_s, 1),
            format_number(line.stream_rate / 1e6, 3),
            format_number(format_ratio(line.steady_rate, 1e6), 3),
            format_number(line.memory_bytes / 1e9, 2),
        )
    return table


def kafka(lines: Sequence[KafkaThroughput]) -> Table:
    """Return what went through the broker."""
    table = new_table(
        "Kafka: one broker on the same 2 cores, every result checked",
        ("what",),
        ("M obs/s", "goal, M obs/s", "MB/s", "B/obs", "memory GB"),
    )
    for line in lines:
        table.add_row(
            line.what,
            format_number(line.rate / 1e6, 2),
            format_number(format_ratio(line.goal_rate, 1e6), 1),
            format_number(line.bytes_rate / 1e6, 1),
            format_number(line.bytes_an_observation, 1),
            format_number(format_ratio(line.memory_bytes, 1e9), 2),
        )
    return table


def outage(lines: Sequence[Outage]) -> Table:
    """Return what a call costs while no broker answers."""
    table = new_table(
        "No broker answers: every call timed by itself, every stamp counted as dropped",
        (),
        ("calls", "p50 µs", "p99 µs", "goal, p99 µs", "most ms", "memory grown, MB", "of it queue, at most MB"),
    )
    for line in lines:
        table.add_row(
            f"{line.calls:,}",
            *(format_number(span_us, 2) for span_us in (line.p50_us, line.p99_us, line.goal_us)),
            format_number(line.most_us / 1e3, 1),
            *(format_number(amount / 1e6, 1) for amount in (line.grown_bytes, line.queue_bytes)),
        )
    return table


def soak(lines: Sequence[Trend]) -> Table:
    """Return how each amount went."""
    table = new_table(
        "Soak: growth behind the warm-up, by least squares", ("what",), ("first", "last", "an hour", "samples")
    )
    for line in lines:
        amounts = (format_number(amount, 1) for amount in (line.first, line.last, line.slope_per_h))
        table.add_row(f"{line.what}, {line.unit}".removesuffix(", "), *amounts, str(line.samples))
    return table


def scale(runs: Sequence[ScalingRun]) -> Group:
    """Return a row of each run, and the curve of the first run of each policy, their bars to the same scale."""
    table = new_table(
        "Scaling of a consumer that waits for 50 ms a message",
        ("policy",),
        (
            "target",
            "sent",
            "received",
            "repeats",
            "waiting",
            "lost",
            "most processes",
            "at the end",
            "worst p95, s",
            "held",
        ),
    )
    for run in runs:
        counts = (run.sent, run.received, run.repeats, run.waiting, run.lost, run.most_processes, run.last_processes)
        told = (*(f"{count:,}" for count in counts), format_number(run.worst_p95_s, 2), "yes" if run.has_held else "no")
        table.add_row(run.policy, f"{run.target:g}", *told)
    drawn = list({run.policy: run for run in reversed(runs)}.values())[::-1]
    most = max((point.backlog for run in drawn for point in run.curve), default=0)
    return Group(table, *(_scaling_curve(run, most) for run in drawn))


def _scaling_curve(run: ScalingRun, most: int) -> Table:
    table = new_table(f"By {run.policy}", (), ("s", "messages/s", "processes", "p95 of lag, s", "backlog"))
    table.add_column("")
    for point in run.curve:
        lag_s = format_number(point.p95_s, 2)
        numbers = (f"{point.at_s:g}", f"{point.per_s:g}", f"{point.processes}", lag_s, f"{point.backlog:,}")
        table.add_row(*numbers, "#" * round(BAR_WIDTH * point.backlog / max(most, 1)))
    return table
