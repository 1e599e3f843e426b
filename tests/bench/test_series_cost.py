"""Tests of the bench of followed series: each contestant finds the node that stands out, and tells what it cost."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bench import series_contestants, series_cost, warm_up
from bench.contestant import ContestantRun, Json
from bench.footprint import Footprint
from bench.series_cost import SeriesCost, WarmUp
from bench.truth import WrongResultError
from bench.windows import START_US, Fleet, window
from hopwatch.monitor.outliers import state
from hopwatch.monitor.store.rollups import HOUR_US
from tests.bench.contestants import quiet

PAST = 400


def test_ours_is_timed_in_every_way(tmp_path: Path) -> None:
    """The next window, one amended in all series and at one node, and the memory of an hour; all cost something."""
    told = series_contestants.ours(tmp_path, streams=2, nodes=3, past=PAST, rounds=2)
    assert set(told) == {"next_ms", "all_ms", "node_ms", "hour_ms", "memory_bytes"}
    assert min(told.values()) > 0
    assert told["memory_bytes"] > 2 * 3 * 6 * state.STATE.itemsize


def test_a_detector_that_finds_nothing_is_told(tmp_path: Path) -> None:
    """Series that have seen nothing yet are surprised by nothing."""
    with pytest.raises(WrongResultError, match="Hopwatch found nothing of a node with a tenth of its messages"):
        series_contestants.ours(tmp_path, streams=1, nodes=1, past=1, rounds=1)


def test_a_rolling_mean_that_finds_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how far it saw the value off."""
    assert (
        series_contestants.rolling(tmp_path, series=4, rounds=2)["memory_bytes"] == series_contestants.ROLLING * 4 * 8
    )
    monkeypatch.setattr(series_contestants, "FAR", 1e9)
    with pytest.raises(WrongResultError, match=r"pandas, z-score over an hour gave 100 among values around 0 \d+"):
        series_contestants.rolling(tmp_path, series=4, rounds=2)


def test_an_hour_of_every_stream_is_kept(tmp_path: Path) -> None:
    """One stream a transaction, until the memory of all of them is that of before the next hour."""
    made = series_contestants.start_watch(
        tmp_path, Fleet(2, 2), series_contestants.build_memory(1, np.random.default_rng(1))
    )
    for _ in range(61):
        made.time_windows(made.next())
    made.keep()
    assert [watched.base_us for watched in made.ledger.watched.values()] == [START_US + HOUR_US] * 2


def test_the_first_value_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled detector is kept where it is told to, by a process that has not imported it yet."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert min(warm_up.run_first_value(tmp_path, cache=str(tmp_path)).values()) > 0
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path)


def test_ratios_are_over_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of each size one line a contestant; that of the trees is multiplied from the series that it was timed with."""
    answers: dict[str, Json] = {
        "bench.warm_up:run_first_value": {"import_s": 1.0, "first_s": 7.0},
        "bench.outliers:half_space_trees": {"minute_s": 100.0, "state_bytes": 10},
        "bench.series_contestants:ours": {
            "next_ms": 2.0,
            "all_ms": 3.0,
            "node_ms": 4.0,
            "hour_ms": 5.0,
            "memory_bytes": 6,
        },
        "bench.series_contestants:rolling": {"next_ms": 1.0, "memory_bytes": 7},
    }
    monkeypatch.setattr(
        series_cost, "run", lambda function, *_, **__: ContestantRun(answers[function], 1.0, Footprint())
    )
    monkeypatch.setattr(series_cost, "FLEETS", (Fleet(2, 5),))
    warm, ours, pandas, river = series_cost.measure(tmp_path, quiet)
    assert warm == WarmUp(7.0, 7.0)
    assert ours == SeriesCost(series_contestants.OURS, 2, 5, 2.0, 6, 1.0, 3.0, 4.0, 5.0)
    assert pandas == SeriesCost(series_contestants.PANDAS, 2, 5, 1.0, 7, 0.5)
    assert river == SeriesCost(series_cost.RIVER, 2, 5, 60.0, 600, 30.0)


def test_a_chain_of_nodes_that_lose_adds_up() -> None:
    """Each node expects as many as the one before it has seen, and the losses of nodes add up."""
    made = window("s0", ("a", "b", "c"), START_US, np.random.default_rng(1), is_lossy=True)
    assert [node.expected for node in made.nodes[1:]] == [node.seen for node in made.nodes[:-1]]
    assert made.lost == sum(node.loss for node in made.nodes) == made.known - made.delivered
    assert made.lost > 0
