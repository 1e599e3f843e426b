"""Tests of ``hopwatch outliers``: what it writes, what it shows, and what it refuses."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.noises import DAY, MONDAY_US
from hopwatch.cli.main import main
from hopwatch.monitor.outliers.explanation import Explanation, SurpriseReason
from hopwatch.monitor.outliers.findings import FindingChanges, OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.store import dialect, outliers, schema
from tests.support.spool import START_US
from tests.support.workspace import Workspace

Captured = pytest.CaptureFixture[str]

COUNT = 2 * DAY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with three series: calm, struck on the second day, and one with gaps."""
    dice = np.random.default_rng(1)
    for name, at in (("calm", None), ("deep/struck", COUNT - 50), ("gaps", None)):
        values = dice.normal(50, 1, COUNT)
        if at is not None:
            values[at] = 500
        texts = [f"{value:.3f}" for value in values.tolist()]
        if name == "gaps":
            texts[100:200] = [""] * 100
        write(tmp_path / "in" / f"{name}.csv", texts)
    return tmp_path / "in"


def write(path: Path, texts: list[str]) -> None:
    """Write a series of one value a minute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{MONDAY_US // 1_000_000 + 60 * place},{text}" for place, text in enumerate(texts)]
    path.write_text("timestamp,value\n" + "\n".join(lines) + "\n")


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file with scores."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def score(folder: Path, out: Path, *flags: str) -> int:
    """Run the command."""
    return main(["outliers", "score", str(folder), "--out", str(out), *flags])


def test_every_file_is_scored_at_its_place(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    """The same relative paths and rows; the outlier is marked, told in a sentence on stdout, and counted on stderr."""
    assert score(folder, tmp_path / "out") == 0
    told = capsys.readouterr()
    struck = rows(tmp_path / "out" / "deep" / "struck.csv")
    assert list(struck[0]) == ["timestamp", "value", "score", "notice", "outlier"]
    assert [place for place, row in enumerate(struck) if row["outlier"] == "1"] == [COUNT - 50]
    assert struck[COUNT - 50]["notice"] == "1"
    assert told.out.startswith(f"deep/struck.csv  {struck[COUNT - 50]['timestamp']}  score 9.5  value 500, expected 4")
    assert told.err == f"3 series, {3 * COUNT:,} points, 100 gaps, {told.err.partition('gaps, ')[2]}"
    assert told.err.endswith(" notices, 1 outliers\n")
    gaps = rows(tmp_path / "out" / "gaps.csv")
    assert {row["score"] for row in gaps[100:200]} == {"0"}


def test_the_summary_as_json(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    """One object: sums, and each file with its outliers explained."""
    assert score(folder, tmp_path / "out", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["series"], told["points"], told["gaps"], told["outliers"]) == (3, 3 * COUNT, 100, 1)
    assert [one["path"] for one in told["files"]] == ["calm.csv", "deep/struck.csv", "gaps.csv"]
    (outlier,) = told["files"][1]["outliers"]
    assert set(outlier) == {"timestamp", "since", "score", "observed", "low", "high", "reasons", "text"}
    assert outlier["since"] == "2026-01-06T23:10:00Z"
    assert outlier["low"] < 50 < outlier["high"] < outlier["observed"] == 500
    assert all(set(reason) == {"view", "words", "once_in"} for reason in outlier["reasons"])


def test_names_and_order_change_nothing(folder: Path, tmp_path: Path) -> None:
    """Renamed and moved, every series gets the scores that it had."""
    assert score(folder, tmp_path / "out") == 0
    shutil.move(folder / "calm.csv", folder / "z.csv")
    shutil.move(folder / "deep" / "struck.csv", folder / "calm.csv")
    assert score(folder, tmp_path / "again") == 0
    first, again = tmp_path / "out", tmp_path / "again"
    assert (first / "calm.csv").read_text() == (again / "z.csv").read_text()
    assert (first / "deep" / "struck.csv").read_text() == (again / "calm.csv").read_text()


def test_all_that_is_wrong_is_told_and_the_rest_is_written(folder: Path, tmp_path: Path, capsys: Captured) -> None:
    """A line a file, with its place, so that an editor can jump there; exit code 2."""
    write(folder / "bad.csv", ["1", "2", "x"])
    (folder / "worse.csv").write_text("no,header\n")
    assert score(folder, tmp_path / "out") == 2
    told = capsys.readouterr().err.splitlines()
    assert told[-2:] == [
        f"{folder}/bad.csv:4: value: a value is a number up to 1e+30, or empty for a gap; got 'x'",
        f"{folder}/worse.csv:1: the first line names the columns timestamp,value; got 'no,header'",
    ]
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.csv")) == ["calm.csv", "gaps.csv", "struck.csv"]


@pytest.mark.parametrize("inside", [".", "scores"])
def test_nothing_is_written_among_what_is_read(inside: str, folder: Path, capsys: Captured) -> None:
    """Neither over it, nor where it would be read next time."""
    assert score(folder, folder / inside) == 2
    words = f"is {folder} or lies in it: name a folder outside, nothing is overwritten"
    assert words in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: Captured) -> None:
    """Exit code 2, and what to name."""
    assert score(tmp_path / "none", tmp_path / "out") == 2
    assert "none is no folder: name one that holds CSV files" in capsys.readouterr().err


@pytest.fixture
def found(workspace: Workspace) -> Workspace:
    """Return a place where a monitor has noticed something, and found an outlier in the minute behind it."""
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    reason = SurpriseReason("level_up", "high", 2_000.0)
    why = Explanation(Quantity.MESSAGES, 40, 90, 110, (reason,), START_US, 4.0)
    notice = OutlierFinding(START_US, "b", is_outlier=False, why=why)
    outlier = OutlierFinding(
        START_US + 60_000_000, "b", is_outlier=True, why=replace(why, score=8.0, low=None, high=None)
    )
    with engine.execution_options(writes=True).begin() as connection:
        outliers.write_changes(connection, "orders", FindingChanges([], [notice, outlier]))
    engine.dispose()
    return workspace


def listed(workspace: Workspace, *flags: str) -> int:
    """Run the command on a place."""
    return main(["outliers", "list", "--config", str(workspace.config), *flags])


def test_what_the_monitor_found_is_listed(found: Workspace, capsys: Captured) -> None:
    """A line an outlier with what was expected and why; what was only noticed when asked for."""
    assert listed(found) == 0
    told = capsys.readouterr()
    where = "2026-01-01T00:01:00Z  orders  b  outlier  score 8.0"
    assert told.out == f"{where}  messages 40: high (once in 2,000)\n"
    assert told.err == "outliers: 1, notices: 1; --notices shows these too\n"
    assert listed(found, "--notices", "--to", "2026-01-01T00:01:00Z") == 0
    told = capsys.readouterr()
    where = "2026-01-01T00:00:00Z  orders  b  notice  score 4.0"
    assert told.out == f"{where}  messages 40, expected 90 to 110: high (once in 2,000)\n"
    assert told.err == "outliers: 0, notices: 1\n"


def test_what_was_found_is_for_programs_too(found: Workspace, capsys: Captured) -> None:
    """Every figure under a name of its own; of another stream there is nothing, of one that is not there an error."""
    assert listed(found, "--json") == 0
    (one,) = json.loads(capsys.readouterr().out)["outliers"]
    assert one == {
        "stream": "orders",
        "window_start": "2026-01-01T00:01:00Z",
        "node": "b",
        "quantity": "messages",
        "is_outlier": True,
        "since": "2026-01-01T00:00:00Z",
        "score": 8.0,
        "observed": 40.0,
        "low": None,
        "high": None,
        "reasons": [{"view": "level_up", "words": "high", "once_in": 2_000.0}],
        "text": "messages 40: high (once in 2,000)",
    }
    assert listed(found, "--stream", "nothing") == 2
    assert "nothing" in capsys.readouterr().err
