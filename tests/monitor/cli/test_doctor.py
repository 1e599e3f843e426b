"""Tests of ``hopwatch doctor`` as a command; the checks have tests of their own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from monitor import java
from monitor.cli.doctor import exit_code
from monitor.cli.main import main
from monitor.doctor import Level
from tests.monitor.cli.workplace import Workplace, all_told
from tests.monitor.spooled import observed

CHECKS = ["config", "python", "java", "spark", "transport", "clocks", "store", "workdir"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a configuration and a spool in it."""
    (tmp_path / "spool" / "orders.a.h-1.1790000000000000").mkdir(parents=True)
    (tmp_path / "hopwatch.toml").write_text('[transport]\nurl = "spool:spool"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    """One line a check on stdout, each with OK, in the order in which things are stood on; exit code 0."""
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()] == [["OK", check] for check in CHECKS]
    assert err == ""


def test_a_failed_check_is_told_with_advice(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """FAIL, what was got, and on the next line what to do; the clock of a spool that is none is not asked."""
    shutil.rmtree(place / "spool")
    (place / "spool").touch()
    assert main(["doctor", "--config", str(place / "hopwatch.toml")]) == 3
    lines = capsys.readouterr().out.splitlines()
    (failed,) = [number for number, line in enumerate(lines) if line.startswith("FAIL")]
    assert lines[failed].startswith(f"FAIL transport  the spool {place}/spool is a folder")
    assert lines[failed + 1].strip() == "start a probe with this sink, or correct [transport] url"
    assert not any("clocks" in line for line in lines)


def test_before_the_first_probe_nothing_has_failed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0, with what to start; the clock of a spool that is not there is not asked."""
    shutil.rmtree(place / "spool")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (told,) = [number for number, line in enumerate(lines) if line.startswith("OK   transport")]
    assert lines[told].startswith(f"OK   transport  the spool {place}/spool is not there yet, and can be made; ")
    assert lines[told + 1].strip() == f"no probe has written to it: start one with the sink spool:{place}/spool"
    assert not any("clocks" in line for line in lines)
    assert not (place / "spool").exists()


@pytest.mark.usefixtures("place")
def test_findings_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One object with the same checks, and the same exit code."""
    monkeypatch.setattr(java, "executable", lambda: None)
    assert main(["doctor", "--json"]) == 3
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [check["check"] for check in checks] == CHECKS
    assert {check["level"] for check in checks} == {"OK", "FAIL"}
    assert set(checks[0]) == {"check", "level", "message", "advice"}
    assert "apt-get install openjdk-17-jre-headless" in checks[2]["advice"]


def test_without_a_configuration_the_defaults_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no hopwatch.toml, the places are those of a monitor that is started here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "var" / "spool").mkdir(parents=True)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "no hopwatch.toml in this folder: the defaults, and no streams" in out
    assert f"the spool {tmp_path}/var/spool can be read and written" in out


def test_a_wrong_configuration_is_exit_code_2(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is checked before it is known what to check."""
    (place / "hopwatch.toml").write_text("[transport]\nurl = 1")
    assert main(["doctor"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("hopwatch.toml:2: transport.url: ")


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ([], 0),
        ([Level.OK], 0),
        ([Level.OK, Level.WARN], 1),
        ([Level.FAIL, Level.WARN, Level.OK], 3),
    ],
)
def test_the_worst_level_is_the_exit_code(levels: list[Level], code: int) -> None:
    """A failure is a dependency that is down, a warning is a finding."""
    assert exit_code(levels) == code


def test_ids_that_change_on_the_way_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that calls messages by ids that no node before it knows is named, with stream and window; exit 1."""
    place = Workplace(tmp_path).configure()
    place.watch(observed([1, 2]), observed([101, 102], "b"), *all_told(seq=1))
    assert place.run("doctor") == 1
    lines = capsys.readouterr().out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.split()[:2] == ["WARN", "ids"]]
    told = "b: none of the 2 messages of the probe probe-of-b was seen before b"
    assert lines[at].split(maxsplit=2)[2] == f"orders, window 2026-01-01T00:00:00Z: {told}"
    assert lines[at + 1].strip() == "give a message one id at all nodes: 7 and '7' are two ids, a UUID and its text too"


def test_ids_that_stay_are_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As far as the windows of the last hour say that was judged."""
    place = Workplace(tmp_path).configure()
    place.watch(observed([1, 2]), observed([1, 2], "b"), *all_told(seq=1))
    assert place.run("doctor") == 0
    told = "OK   ids        in the last hour that was judged no probe has ids that only it knows"
    assert told in capsys.readouterr().out
