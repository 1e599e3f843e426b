"""Tests of a contestant's own process: what it is given, what is looked at, and how it is told that it failed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import contestant
from bench.contestant import CORES, ContestantError, run


def test_a_contestant_is_called_on_two_cores_and_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contestant gets its arguments and a folder of its own; its memory is measured, and the folder deleted."""
    monkeypatch.setattr(contestant, "LOOK_S", 0.0)
    ran = run("tests.bench.contestants:tells", tmp_path, much="a lot")
    assert ran.result == {"much": "a lot", "is_folder": True, "cores": min(CORES, os.cpu_count() or 1)}
    assert ran.process_s > 0
    assert 0 < ran.peak.mapped_bytes < ran.peak.memory_bytes
    assert not list(tmp_path.iterdir())


def test_a_contestant_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    """The exit code and what it died of are in the error."""
    said = r"^tests\.bench\.contestants:fails ended with exit code 1: (?s:.*)RuntimeError: nothing was found in run-$"
    with pytest.raises(ContestantError, match=said):
        run("tests.bench.contestants:fails", tmp_path)
