"""Score of the detector on a labelled benchmark, by the given scorer; labels and rules are not in here.

DATA holds ``data/FOLDER/NAME.csv`` and ``windows.json``, which names the labelled spans of each file. The scorer is a
Python program that is called as ``SCORER SCORES --root DATA --threshold T`` and prints, a line a profile, the score at
the best threshold for all series and at T: ``standard: 79.41 at threshold 3.7612; 78.69 at 3.7``.

How much of the best threshold is luck is looked at by folder: each is scored at the threshold that is best for all
others. The constants stay as they are.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from bench.contestant import ContestantError
from bench.speed import Progress
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.outliers import detector

LABELS: Final = "windows.json"
DATA: Final = "data"
MARKS: Final = ("notice", "outlier")
_SAID: Final = re.compile(r"^(\w+): (-?[\d.]+) at threshold (\S+); (-?[\d.]+) at (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Profile:
    """The scores of one profile, 0 for a detector that says nothing and 100 for a perfect one.

    ``best`` at the best threshold for all series, ``shipped`` at that of a notice, ``left_out`` each folder at the best
    threshold for all others, which are from ``least_threshold`` to ``most_threshold``.
    """

    profile: str
    best: float
    best_threshold: float
    shipped: float
    shipped_threshold: float
    left_out: float
    least_threshold: float
    most_threshold: float


@dataclass(frozen=True, slots=True)
class MarkedSeries:
    """Count of labelled windows with at least one mark, and of marks outside of all windows."""

    mark: str
    windows: int
    found: int
    outside: int


class DetectorScores(NamedTuple):
    """Scores of a profile: at the best threshold, that threshold, and at the requested one."""

    best: float
    threshold: float
    asked: float


Labels = Mapping[str, list[tuple[str, str]]]


def measure(data: Path | None, scorer: Path | None, scratch: Path, tell: Progress) -> list[Profile | MarkedSeries]:
    """Return what the scorer says of the shipped detector.

    Raises:
        ConfigurationError: data or scorer are not named, or the labels cannot be read.
        ContestantError: the detector or the scorer failed, or said something else than scores.
    """
    if data is None or scorer is None:
        raise ConfigurationError("nab needs labelled series and who scores them: name --data DIR and --scorer FILE")
    labels = _labels(data)
    with TemporaryDirectory(dir=scratch) as own:
        return list(_Judge(data, scorer, labels, Path(own), tell).judged())


def score_series(scorer: Path, scores: Path, root: Path, threshold: float) -> dict[str, DetectorScores]:
    """Return what the scorer says, by profile.

    Raises:
        ContestantError: it failed, or said something else.
    """
    told = _run(str(scorer), str(scores), "--root", str(root), "--threshold", f"{threshold:.6g}")
    said = {
        name: DetectorScores(float(best), float(at), float(asked)) for name, best, at, asked, _ in _SAID.findall(told)
    }
    if not said:
        raise ContestantError(
            f"{scorer} says nothing of the form 'standard: 1.0 at threshold 2; 3.0 at 4': {told:.200}"
        )
    return said


class _Judge:
    """The shipped detector's scores, and who scores them."""

    def __init__(self, data: Path, scorer: Path, labels: Labels, folder: Path, tell: Progress) -> None:
        self._data: Final = data
        self._scorer: Final = scorer
        self._labels: Final = labels
        self._folder: Final = folder
        self._tell: Final = tell

    def judged(self) -> Iterator[Profile | MarkedSeries]:
        """Score all series, and yield what the scorer says and what was marked."""
        self._tell("nab: hopwatch outliers score")
        scores = self._folder / "scores"
        _run("-m", "hopwatch", "outliers", "score", str(self._data / DATA), "--out", str(scores))
        self._tell("nab: the scorer, of all files")
        shipped = score_series(self._scorer, scores, self._data, detector.NOTICE)
        folders = sorted({_folder(name) for name in self._labels})
        others = {folder: self._without(folder) for folder in folders}
        for profile, said in shipped.items():
            thresholds = {folder: others[folder][profile].threshold for folder in folders}
            moved = self._folder / profile
            for name in self._labels:
                move(scores / name, moved / name, thresholds[_folder(name)])
            left_out = score_series(self._scorer, moved, self._data, 0.0)[profile].asked
            ends = min(thresholds.values()), max(thresholds.values())
            yield Profile(profile, said.best, said.threshold, said.asked, detector.NOTICE, left_out, *ends)
        for mark in MARKS:
            yield marked(mark, self._labels, scores)

    def _without(self, folder: str) -> dict[str, DetectorScores]:
        """Return what the scorer says of all files but those of a folder."""
        self._tell(f"nab: without {folder}")
        root = self._folder / f"without-{folder}"
        root.mkdir()
        (root / DATA).symlink_to((self._data / DATA).resolve())
        kept = {name: spans for name, spans in self._labels.items() if _folder(name) != folder}
        (root / LABELS).write_text(json.dumps(kept), "utf-8")
        return score_series(self._scorer, self._folder / "scores", root, detector.NOTICE)


def _folder(name: str) -> str:
    """Return the folder that a series is in."""
    return Path(name).parts[0]


def move(scores: Path, moved: Path, threshold: float) -> None:
    """Write scores so that what is at a threshold is at 0."""
    frame = pd.read_csv(scores, usecols=["timestamp", "score"])
    frame["score"] = (frame["score"] - threshold).round(4)
    moved.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(moved, index=False)


def marked(mark: str, labels: Labels, scores: Path) -> MarkedSeries:
    """Count the labelled windows that have a mark, and the marks outside."""
    windows = found = outside = 0
    for name, spans in labels.items():
        frame = pd.read_csv(scores / name, parse_dates=["timestamp"])
        moments = frame.loc[frame[mark] == 1, "timestamp"].to_numpy()
        within = [(moments >= np.datetime64(first)) & (moments <= np.datetime64(last)) for first, last in spans]
        windows += len(spans)
        found += sum(bool(one.any()) for one in within)
        outside += len(moments) - int(np.any(within, axis=0).sum()) if spans else len(moments)
    return MarkedSeries(mark, windows, found, outside)


def _labels(data: Path) -> Labels:
    """Return the labelled spans by file.

    Raises:
        ConfigurationError: they cannot be read.
    """
    try:
        return {name: list(spans) for name, spans in json.loads((data / LABELS).read_text("utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"{data / LABELS} does not name the labelled spans of each file: {error}") from error


def _run(*command: str) -> str:
    """Return what a Python program says.

    Raises:
        ContestantError: it failed; the message ends with what it said last.
    """
    ran = subprocess.run(  # noqa: S603 - our own program, or the one that was named
        (sys.executable, *command), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        last = ran.stderr.strip()[-2_000:]
        raise ContestantError(f"{' '.join(command)} ended with exit code {ran.returncode}: {last}")
    return ran.stdout
