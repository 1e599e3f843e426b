"""Tests of the cost of a stamp: what is measured did happen, for us and for the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry import propagate

from bench import stamp_contestants
from bench.contestant import Json
from bench.truth import WrongResultError
from hopwatch import Probe
from hopwatch.testing import MemorySink


@pytest.mark.parametrize(
    ("contestant", "calls"),
    [
        (stamp_contestants.ours, {"arrived", "departed", "passing", "arrays"}),
        (stamp_contestants.opentelemetry, {"span"}),
        (stamp_contestants.traced, {"traced send", "traced receive", "stamped send", "stamped receive"}),
        (stamp_contestants.confluent_kafka, {"bare produce", "stamped produce"}),
        (stamp_contestants.prometheus, {"observe"}),
    ],
)
def test_each_call_is_measured_and_kept(
    contestant: Callable[..., Json], calls: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes time, for the caller and for the CPU; the contestant itself checks that nothing was dropped."""
    monkeypatch.setattr(propagate, "_HTTP_TEXT_FORMAT", propagate.get_global_textmap())
    told = contestant(tmp_path, rounds=2)
    assert set(told) == calls
    assert all(cost["ns"] > 0 and cost["cpu_ns"] > 0 for cost in told.values())


def test_stamps_are_counted_on_both_sides() -> None:
    """A message that arrived and departed has two, one that only arrived has one."""
    probe = Probe("bench", "n0", sink := MemorySink(), max_age_s=None)
    with probe.passing(1, 1_700_000_000_000_000):
        pass
    probe.arrived(2, 1_700_000_000_000_000)
    probe.close()
    assert stamp_contestants.stamps_in(sink.records) == 3


def test_calls_that_were_not_kept_are_told() -> None:
    """An instrument that is switched off is not quick."""
    with pytest.raises(WrongResultError, match=r"^Datadog was called 1,024 times and kept 0$"):
        stamp_contestants.check_kept("Datadog", 1_024, 0)
