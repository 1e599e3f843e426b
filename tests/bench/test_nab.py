"""Tests of the bench on labelled series: what the scorer says is taken as it is, and a left-out folder is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import nab
from bench.contestant import ContestantError
from bench.nab import MarkedSeries, Profile
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.outliers import detector
from tests.bench.contestants import quiet

POINTS = 1_000
SCORER = """
import argparse, csv, json, pathlib

parser = argparse.ArgumentParser()
parser.add_argument("scores", type=pathlib.Path)
parser.add_argument("--root", type=pathlib.Path)
parser.add_argument("--threshold", type=float)
asked = parser.parse_args()
labels = json.loads((asked.root / "windows.json").read_text())
assert all((asked.root / "data" / name).is_file() for name in labels)
best = max(float(row["score"]) for name in labels for row in csv.DictReader((asked.scores / name).open()))
for profile in ("standard", "other"):
    print(f"{profile}: {len(labels)}.50 at threshold {best:.6g}; {best:.2f} at {asked.threshold:.6g}")
"""
"""A scorer that gives the number of series, and the highest score of all as threshold and at the one asked for."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return three series in two folders, one of them with a labelled event."""
    folder = tmp_path / "labelled"
    moments = pd.date_range("2026-01-05", periods=POINTS, freq="5min")
    for seed, name in enumerate(("a/one.csv", "a/two.csv", "b/three.csv")):
        values = np.random.default_rng(seed).normal(size=POINTS)
        values[900] += 0 if name == "b/three.csv" else 60 + seed
        file = folder / "data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame({"timestamp": moments, "value": values}).to_csv(file, index=False)
    spans = [[str(moments[890]), str(moments[910])]]
    (folder / "windows.json").write_text(json.dumps({"a/one.csv": spans, "a/two.csv": [], "b/three.csv": []}), "utf-8")
    return folder


@pytest.fixture
def scorer(tmp_path: Path) -> Path:
    """Return a scorer of few words."""
    file = tmp_path / "scorer.py"
    file.write_text(SCORER, "utf-8")
    return file


def test_each_folder_is_scored_at_the_threshold_of_the_others(data: Path, scorer: Path, tmp_path: Path) -> None:
    """Its scores are moved by that threshold, so that one of zero stands for all of them."""
    standard, other, notices, outliers = nab.measure(data, scorer, tmp_path, quiet)
    assert isinstance(standard, Profile)
    assert isinstance(notices, MarkedSeries)
    assert (standard.profile, standard.best, standard.shipped_threshold) == ("standard", 3.5, detector.NOTICE)
    # Folder a has the highest score of all; without it the highest is that of b, which is what a is held against.
    assert (standard.shipped, standard.most_threshold) == pytest.approx((standard.best_threshold,) * 2, abs=0.005)
    assert standard.left_out == pytest.approx(standard.most_threshold - standard.least_threshold, abs=0.01)
    assert standard.left_out > 0
    assert isinstance(other, Profile)
    assert other.left_out == standard.left_out
    assert (notices.windows, notices.found) == (1, 1)
    assert notices.outside >= 1
    assert outliers == MarkedSeries("outlier", 1, 1, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labelled", "scorer.py"]


def test_moved_scores_keep_their_order(tmp_path: Path) -> None:
    """Moved scores keep their order: the threshold is zero, to the digits that are written."""
    written, moved = tmp_path / "one.csv", tmp_path / "moved" / "one.csv"
    pd.DataFrame({"timestamp": ["a", "b", "c"], "score": [3.7611, 3.7612, 0.0]}).to_csv(written, index=False)
    nab.move(written, moved, 3.7612)
    assert pd.read_csv(moved)["score"].tolist() == [-0.0001, 0.0, -3.7612]


def test_what_the_scorer_says_is_read() -> None:
    """A line a profile: best score, its threshold, and the score at the threshold asked for."""
    said = "standard: 79.41 at threshold 3.7612; -8.69 at 3.7\nreward_low_FP: 1.00 at threshold inf; 2.00 at 0"
    found = nab._SAID.findall(said)
    assert found == [("standard", "79.41", "3.7612", "-8.69", "3.7"), ("reward_low_FP", "1.00", "inf", "2.00", "0")]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('fine')", "says nothing of the form 'standard: 1.0 at threshold 2; 3.0 at 4': fine"),
        ("raise SystemExit('no such series')", "ended with exit code 1: no such series"),
    ],
)
def test_a_scorer_that_fails_is_told(program: str, said: str, data: Path, tmp_path: Path) -> None:
    """With what it said last."""
    file = tmp_path / "bad.py"
    file.write_text(program, "utf-8")
    with pytest.raises(ContestantError, match=re.escape(said)):
        nab.score_series(file, data, data, 3.7)


def test_what_is_not_named_or_not_there_is_told(scorer: Path, tmp_path: Path) -> None:
    """Before anything is measured."""
    with pytest.raises(ConfigurationError, match="nab needs labelled series and who scores them: name --data DIR and"):
        nab.measure(None, scorer, tmp_path, quiet)
    with pytest.raises(ConfigurationError, match=r"windows\.json does not name the labelled spans .*: .*No such"):
        nab.measure(tmp_path, scorer, tmp_path, quiet)
