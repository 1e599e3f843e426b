"""Tests of the bench of suggested thresholds: alerts of both halves are counted, and incidents that fire."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from bench import suggestions
from bench.forecasts import HEALTHY
from bench.suggestions import SuggestionLine


def test_all_of_it_in_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind has a threshold over its median, and what is caught does not fall as incidents grow."""
    monkeypatch.setattr(suggestions, "WEEK", 2_000)
    counted = suggestions.count_alerts(tmp_path, series=2, weeks=1)
    assert set(counted) == set(HEALTHY)
    lines = [suggestions.summarize_series(kind, found) for kind, found in counted.items()]
    for line in lines:
        assert line.learnt <= 1
        assert list(line.caught.values()) == sorted(line.caught.values())
    console = Console(width=160)
    with console.capture() as said:
        console.print(suggestions.build_table(lines))
    assert "daily sine" in said.get()


def test_a_line_has_means_over_the_series() -> None:
    """The threshold is a median, and shares are of incidents."""
    found = [
        {"threshold": 2.0, "learnt": 1, "later": 0, "caught": {"2": False, "5": True}},
        {"threshold": 4.0, "learnt": 0, "later": 3, "caught": {"2": True, "5": True}},
    ]
    line = suggestions.summarize_series("x", found)
    assert line == SuggestionLine("x", 2, 3.0, 0.5, 1.5, {"2": 0.5, "5": 1.0})
