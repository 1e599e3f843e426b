"""Tests of ``python -m bench``: what a person reads who asks for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import machine, stamp_cost
from bench.cli import _MEASURES, Measure, _chosen, main
from bench.contestant import ContestantError
from bench.generate import DiskError
from bench.speed import Progress
from bench.stamp_cost import Cost
from tests.repository import ROOT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["fast"],
            "'fast' is not one of 'speed', 'probes', 'live', 'streams', 'growth', 'labels', 'kafka', 'instances'",
        ),
        (["nab"], "bench: nab needs labelled series and who scores them: name --data DIR and --scorer FILE"),
        (["--observations", "many"], "Invalid value for '--observations'"),
        (["--observations", "3"], "Input should be greater than or equal to 400000"),
        (["--scratch", __file__], "is a file"),
        (["--scratch", "/proc/nowhere"], "bench: the scratch folder /proc/nowhere cannot be made: No such file"),
        (["--loud"], "No such option: --loud"),
    ],
)
def test_a_bad_flag_is_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A bad flag exits with code 2 and names on stderr the flag, its value and the allowed ones."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert "Traceback" not in out + err


COSTS = [Cost("ours", "arrived", 340.0, 1_900.0, 1_000.0)]


def test_a_table_goes_to_stdout_and_progress_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine and the table are the data; a folder that was not named is gone afterwards."""
    folders: list[Path] = []

    def measure(folder: Path, tell: Progress) -> list[Cost]:
        assert folder.is_dir()
        folders.append(folder)
        tell("stamps")
        return COSTS

    monkeypatch.setattr(stamp_cost, "measure", measure)
    assert main(["probes"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{machine.describe_machine().processor}, ")
    assert "340" in out
    assert err.endswith("s  stamps\n")
    assert not folders[0].exists()


def test_json_is_one_value(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All that was measured, and on what; a folder that was named is made and stays."""
    monkeypatch.setattr(stamp_cost, "measure", lambda *_: COSTS)
    assert main(["probes", "--json", "--scratch", str(tmp_path / "a" / "b")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["probes"] == [{"who": "ours", "call": "arrived", "ns": 340.0, "cpu_ns": 1_900.0, "goal_ns": 1_000.0}]
    assert set(told["machine"]) == {"processor", "cores", "load", "python"}
    assert (tmp_path / "a" / "b").is_dir()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            ContestantError("bench.peers.duck:run ended with exit code 1: wrong"),
            1,
            "duck:run ended with exit code 1: wrong\n",
        ),
        (DiskError("/scratch has 1.0 GB free"), 3, "bench: /scratch has 1.0 GB free\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_ends_a_measure_is_told(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong result, a full disk and an interrupt each have a code of their own, and no traceback."""

    def measure(*_: object) -> list[Cost]:
        raise error

    monkeypatch.setattr(stamp_cost, "measure", measure)
    assert main(["probes"]) == code
    err = capsys.readouterr().err
    assert err.endswith(said)
    assert "Traceback" not in err


def test_all_is_what_needs_nothing_from_outside() -> None:
    """Labelled series are judged too where they are named; the soak takes an hour, and is asked for by name."""
    everything = set(_MEASURES) - {Measure.SOAK}
    assert set(_chosen(Measure.ALL, has_labels=True)) == everything
    assert set(_chosen(Measure.ALL, has_labels=False)) == everything - {Measure.NAB}
    assert _chosen(Measure.NAB, has_labels=False) == (Measure.NAB,)
    assert _chosen(None, has_labels=False) == (Measure.SPEED, Measure.PROBES, Measure.LIVE)


def test_the_page_on_performance_names_what_can_be_measured() -> None:
    """All of it, as it is called."""
    page = (ROOT / "docs" / "PERFORMANCE.md").read_text("utf-8")
    assert [measure.value for measure in Measure if f"`{measure}`" not in page] == []
