"""Tests of the bench of alerts: what is well is no page, what breaks at once is one, and sums are whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import alert_cost, micro_batches
from bench.alert_cost import AlertCost, BudgetCost
from bench.contestant import ContestantRun, Json
from bench.footprint import Footprint
from bench.truth import WrongResultError
from bench.windows import Fleet
from tests.bench.contestants import quiet

HISTORY = 400


@pytest.mark.parametrize("streams", [1, 8])
def test_micro_batches_are_timed(tmp_path: Path, streams: int) -> None:
    """While all is well, behind a lost message, when all breaks and while it stays so; one page, storm or not."""
    told = micro_batches.decide(tmp_path, streams=streams, nodes=2, history=HISTORY, broken=10)
    states = (micro_batches.WELL, micro_batches.SCARRED, micro_batches.STRUCK, micro_batches.BROKEN)
    assert list(told) == list(states)
    assert [one["pages"] for one in told.values()] == [0, 0, 1, 1]
    assert all(one["write_ms"] > 0 and one["follow_ms"] > 0 and one["commit_ms"] > 0 for one in told.values())


def test_pages_that_are_missing_are_told(tmp_path: Path) -> None:
    """A bench whose alerts page for fewer streams than expected fails."""
    play = micro_batches.Play(micro_batches.engine_at(tmp_path), Fleet(1, 2))
    with pytest.raises(WrongResultError, match="0 pages were told of 1 streams, not 1"):
        play.summarise_rounds([play.batch(play.well)], pages=1)


def test_sums_are_timed_by_span(tmp_path: Path) -> None:
    """Each over as many rows as it has minutes."""
    told = micro_batches.sums(tmp_path, streams=2, history=100, spans={"1 h": 60, "all": 100})
    assert list(told) == ["1 h", "all"]
    assert min(told.values()) > 0


def test_a_sum_that_is_not_whole_is_told(tmp_path: Path) -> None:
    """A span that reaches behind the history has fewer minutes than asked for."""
    with pytest.raises(WrongResultError, match="120 minutes with a bad message each summed to 100"):
        micro_batches.sums(tmp_path, streams=1, history=100, spans={"2 h": 120})


def test_there_is_a_line_a_state_and_a_span(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of each size."""
    spans = {"write_ms": 1.0, "follow_ms": 2.0, "commit_ms": 3.0, "pages": 0}
    answers: dict[str, Json] = {
        "bench.micro_batches:decide": {"well": spans},
        "bench.micro_batches:sums": {"30 d": 4.0},
    }
    monkeypatch.setattr(
        alert_cost, "run", lambda function, *_, **__: ContestantRun(answers[function], 1.0, Footprint())
    )
    monkeypatch.setattr(alert_cost, "FLEETS", (Fleet(2, 5),))
    assert alert_cost.measure(tmp_path, quiet) == [
        AlertCost(2, 5, "well", 1.0, 2.0, 3.0, 0),
        BudgetCost("30 d", 43_200, 432_000, 4.0),
    ]
