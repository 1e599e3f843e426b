"""Tests of the comparison of deliveries: its terms, its figures, and one round over a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.delivery import comparison, tables
from bench.delivery.comparison import BenchSizes, DeliveryLine, Run, summarize
from bench.delivery.programs import FASTSTREAM, HOPWATCH, KINDS, PLAIN, Terms
from tests.bench.table_cells import cells

SERIAL, PARALLEL = Terms(HOPWATCH, 1, 1, 0.05), Terms(HOPWATCH, 1, 64, 0.05)


def test_a_round_has_all_programs_and_the_whole_table() -> None:
    """Without a wait each program once; with a round trip ours by batch and parallel, and the others serially."""
    found = comparison.list_terms(BenchSizes(batches=(1, 100), parallels=(1, 64)))
    assert [one.kind for one in found if not one.wait_s] == list(KINDS)
    ours = [(one.batch, one.parallel) for one in found if one.wait_s and one.kind == HOPWATCH]
    assert ours == [(1, 1), (1, 64), (100, 1), (100, 64)]
    assert [(one.kind, one.parallel) for one in found if one.wait_s and one.kind != HOPWATCH] == [
        (PLAIN, 1),
        (FASTSTREAM, 1),
    ]


def test_a_line_has_the_median_and_the_most_memory() -> None:
    """Rates are kept in the order of rounds; processor time is a median, memory a maximum."""
    line = summarize(SERIAL, [Run(19.0, 300.0, 90), Run(17.0, 100.0, 110), Run(18.0, 200.0, 100)])
    assert (line.rates, line.rate, line.cpu_us, line.memory_bytes) == ((19.0, 17.0, 18.0), 18.0, 200.0, 110)


def test_parallel_requests_stand_beside_the_serial_ones() -> None:
    """Expel time is that for one message, and the ratio is over the same batch with one request under way."""
    lines = [DeliveryLine(SERIAL, (20.0,), 1.0, 1), DeliveryLine(PARALLEL, (900.0, 1_000.0, 1_100.0), 1.0, 1)]
    table = cells(tables.delivery(lines))
    assert table["1"] == ["64", "1,000", "900", "1,100", "1.000", "50.0"]


def test_the_goal_is_of_ours_alone() -> None:
    """A program beside it has none."""
    lines = [DeliveryLine(Terms(kind, 100, 1, 0.0), (10_000.0,), 30.0, 100_000_000) for kind in KINDS]
    table = cells(tables.delivery(lines))
    assert table["hopwatch deliver"] == ["100", "1", "10,000", "10,000", "10,000", "20,000", "30", "100"]
    assert table[comparison.WHO[PLAIN]][5] == "-"


def test_a_round_delivers_over_a_real_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has a rate, and none sends a message twice."""
    terms = [Terms(HOPWATCH, 10, 4, 0.0), Terms(PLAIN, 10, 1, 0.0), Terms(FASTSTREAM, 10, 1, 0.0)]
    monkeypatch.setattr(comparison, "list_terms", lambda _: terms)
    said: list[str] = []
    lines = comparison.measure(tmp_path, said.append, BenchSizes(messages=30_000, rounds=1, warm_s=0.05, seconds=1.0))
    assert [line.terms for line in lines] == terms
    assert all(line.rate > 0 and line.memory_bytes > 10_000_000 for line in lines)
    assert said[0] == "a broker with 30,000 messages"
    assert said[1] == "round 1 of 1: hopwatch deliver, 10 x 4"
