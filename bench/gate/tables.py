"""Tables of the gate's figures; numbers only, the conclusions are the reader's."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from bench.gate.figures import P99_GOAL_MS, RATE, RATE_GOAL, WHO, BombFigures, EntranceFigures, Line, SlowFigures
from bench.gate.orders import BATCH
from bench.gate.server import GATE, UNCHECKED
from bench.table_style import NONE, format_number, format_ratio, new_table


def gate(lines: Sequence[Line]) -> Group:
    """Return contestants, slow clients and bombs; of a ratio over 1 the gate is ahead."""
    entrances = {line.who: line for line in lines if isinstance(line, EntranceFigures)}
    words = [Text(f"{line.who}: {line.includes}") for line in entrances.values()]
    if WHO[GATE] in entrances and WHO[UNCHECKED] in entrances:
        words.append(Text(validation(entrances[WHO[GATE]], entrances[WHO[UNCHECKED]])))
    slow = new_table(
        f"Single events, {RATE} a second, without and with clients that send 2 bytes a second, on the gate",
        ("slow clients",),
        (
            "p99 ms without",
            "p99 ms with",
            "with / without",
            "most ms",
            "/healthz, most ms",
            "cut off",
            "after s, at most",
        ),
    )
    bombs = new_table(
        "Bodies that are small packed, refused by the gate with 413",
        (),
        ("packed KB", "unpacked MB", "times", "most ms", "memory grown, MB"),
    )
    for line in lines:
        if isinstance(line, SlowFigures):
            slow.add_row(*_slow(line))
        elif isinstance(line, BombFigures):
            sizes = (
                format_number(line.packed_bytes / 1e3, 0),
                format_number(line.unpacked_bytes / 1e6, 0),
                f"{line.times}",
            )
            bombs.add_row(*sizes, format_number(line.most_ms, 1), format_number(line.grown_bytes / 1e6, 1))
    return Group(_entrances(entrances), *words, slow, bombs)


def validation(ours: EntranceFigures, unchecked: EntranceFigures) -> str:
    """Return which part of the gate's work is validation, with the Avro that is written of what was read."""
    batch, single = (
        1 - without / whole
        for whole, without in (
            (ours.batch_cpu_us, unchecked.batch_cpu_us),
            (ours.single_cpu_us, unchecked.single_cpu_us),
        )
    )
    return (
        f"Validation and Avro: {batch:.0%} of the gate's processor time for an event in a batch, {single:.0%} of that"
        f" for a single one; without them it takes {unchecked.rate / ours.rate:.2f} times as many events"
    )


def _entrances(entrances: dict[str, EntranceFigures]) -> Group:
    table = new_table(
        f"Batches of {BATCH}, and single events, {RATE} a second; one broker, server and client on the same 2 cores",
        ("entrance",),
        ("events/s", "gate / this", "CPU µs an event", "single: p50 ms", "p99 ms", "most ms", "CPU µs", "memory MB"),
    )
    ours = entrances.get(WHO[GATE])
    for line in entrances.values():
        table.add_row(
            line.who,
            format_number(line.rate, 0),
            format_number(None if ours is None else ours.rate / line.rate, 2),
            format_number(line.batch_cpu_us, 1),
            *(format_number(span_ms, 1) for span_ms in (line.p50_ms, line.p99_ms, line.most_ms)),
            format_number(line.single_cpu_us, 0),
            format_number(format_ratio(line.memory_bytes, 1e6), 0),
        )
    table.add_row("goals of the gate", f"≥ {RATE_GOAL:,.0f}", *[NONE] * 3, f"< {P99_GOAL_MS:.0f}", *[NONE] * 3)
    return Group(table)


def _slow(line: SlowFigures) -> tuple[str, ...]:
    return (
        f"{line.clients}",
        format_number(line.without_p99_ms, 1),
        format_number(line.with_p99_ms, 1),
        format_number(line.with_p99_ms / line.without_p99_ms, 2),
        format_number(line.with_most_ms, 1),
        format_number(line.health_most_ms, 1),
        f"{line.cut}",
        format_number(line.lived_most_s, 1),
    )
