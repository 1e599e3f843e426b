"""Tests of what is told of the gate: medians of rounds, ratios, and a dash where nothing was measured."""

from __future__ import annotations

import pytest

from bench.contestant import Json
from bench.gate import comparison, figures
from bench.gate.figures import BombFigures, EntranceFigures, Line, SlowFigures
from bench.gate.server import GATE, PLAIN, UNCHECKED
from bench.gate.tables import gate
from bench.truth import WrongResultError
from tests.bench.table_cells import cells, drawn

OURS = EntranceFigures(figures.WHO[GATE], 30_000.0, 32.0, 4.0, 10.0, 35.0, 800.0, 150_000_000, "all")
BARE = EntranceFigures(figures.WHO[UNCHECKED], 36_000.0, 24.0, 3.5, 8.0, 30.0, 600.0, 140_000_000, "less")


def a_round(rate: float, p99_ms: float, most_ms: float) -> Json:
    """Return what a round was measured to be."""
    singles = {"p50_ms": 4.0, "p99_ms": p99_ms, "most_ms": most_ms, "cpu_us": 800.0}
    return {"batches": {"rate": rate, "cpu_us": 32.0}, "singles": singles, "memory_bytes": int(rate)}


def test_rounds_are_told_by_their_middle_and_their_worst() -> None:
    """The middle of rates and percentiles, the longest span and the most memory of all."""
    rounds = [a_round(30e3, 10.0, 90.0), a_round(10e3, 80.0, 30.0), a_round(31e3, 9.0, 20.0)]
    line = figures.summarize_entrance(PLAIN, rounds)
    assert (line.who, line.rate, line.p99_ms, line.most_ms) == ("FastAPI, pydantic, fastavro", 30e3, 10.0, 90.0)
    assert line.memory_bytes == 31_000


def test_slow_clients_are_told_by_the_middle_of_the_others() -> None:
    """The worst of what the others waited, and how many were cut off in all; none is no span."""
    without = [{"p99_ms": 8.0}, {"p99_ms": 10.0}]
    beside = [{"p99_ms": 12.0, "most_ms": 40.0, "health_most_ms": 7.0}] * 2
    crowds: list[Json] = [
        {"clients": 200, "cut": 90, "lived_most_s": 10.5},
        {"clients": 199, "cut": 0, "lived_most_s": None},
    ]
    assert figures.summarize_slow(without, beside, crowds) == SlowFigures(199, 9.0, 12.0, 40.0, 7.0, 90, 10.5)
    assert figures.summarize_slow(without, beside, crowds[1:]).lived_most_s is None


def test_a_topic_that_has_less_than_was_acknowledged_is_told() -> None:
    """More may be there: what was sent, but not answered in time."""
    comparison.check_kept(GATE, 5, 6)
    with pytest.raises(WrongResultError, match="'gate' acknowledged 7,000 events, its topic has got 6,999"):
        comparison.check_kept(GATE, 7_000, 6_999)


def test_tables_have_every_line() -> None:
    """Entrances with ratios and goals, slow clients, bombs; of a ratio over 1 the gate is ahead."""
    lines: list[Line] = [
        OURS,
        BARE,
        SlowFigures(200, 10.0, 12.5, 50.0, 8.0, 300, 10.04),
        BombFigures(194_423, 200_000_000, 20, 4.6, 10**5),
    ]
    table = cells(gate(lines))
    assert table[OURS.who] == ["30,000", "1.00", "32.0", "4.0", "10.0", "35.0", "800", "150"]
    assert table[BARE.who] == ["36,000", "0.83", "24.0", "3.5", "8.0", "30.0", "600", "140"]
    assert table["goals of the gate"] == ["≥ 20,000", "-", "-", "-", "< 25", "-", "-", "-"]
    assert table["200"] == ["10.0", "12.5", "1.25", "50.0", "8.0", "300", "10.0"]
    assert table["194"] == ["200", "20", "4.6", "0.1"]
    told = [line[0].strip() for line in drawn(gate(lines)) if line]
    assert (
        "Validation and Avro: 25% of the gate's processor time for an event in a batch, 25% of that for a single one;"
        " without them it takes 1.20 times as many events"
    ) in told


def test_what_was_not_measured_is_a_dash() -> None:
    """Without the gate there is no ratio, and nothing is said of validation."""
    table = gate([BARE])
    assert cells(table)[BARE.who][1] == "-"
    assert not any("Validation and Avro" in line[0] for line in drawn(table) if line)
