"""Tests of the bench of detectors: each scores, finds the event, and tells what it cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import outliers
from bench.contestant import Json
from bench.truth import WrongResultError


def test_ours_is_timed(tmp_path: Path) -> None:
    """In batch and by the minute."""
    told = outliers.ours(tmp_path, series=10, points=2_000)
    assert_told(told)
    assert told["timed_series"] == 10


def test_the_peers_are_timed(tmp_path: Path) -> None:
    """With fewer series, and fewer points."""
    assert_told(outliers.half_space_trees(tmp_path, series=2, points=600))
    assert_told(outliers.isolation_forest(tmp_path, series=2, points=1_560))


def assert_told(told: Json) -> None:
    """Assert that all that is told is there, and more than nothing."""
    assert set(told) == {"point_us", "minute_s", "state_bytes", "timed_series"}
    assert min(told.values()) > 0


def test_a_detector_that_finds_nothing_is_told() -> None:
    """With what it gave the event."""
    scores = np.arange(1_000.0)[::-1]
    with pytest.raises(WrongResultError, match="theirs gave the event 17, below its 75% quantile"):
        outliers._check("theirs", scores)
