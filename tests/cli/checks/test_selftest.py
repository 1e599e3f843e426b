"""Tests of the check of the self-test."""

from __future__ import annotations

from pathlib import Path

import pytest

from hopwatch.cli.checks import Level
from hopwatch.cli.checks.selftest import ADVICE, check_selftest
from hopwatch.monitor.selftest.comparison import ProblemKind, SelftestOutcome, SelftestProblem
from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.store import dialect, fencing, schema, selftest, writer
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.windows import at
from tests.support.workspace import CONFIGURATION, Workspace

PROBLEM = SelftestProblem(ProblemKind.WRONG_COUNT, "lost: injected were 2, measured 1")


def compared(folder: Path, *outcomes: SelftestOutcome) -> str:
    """Return the URL of a store in which minutes were compared, one behind the other."""
    url = f"sqlite:///{folder}/store.db"
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    selftest.record_start(engine, at(0))
    for minute, outcome in enumerate(outcomes, 1):
        selftest.record_minute(engine, InjectedMinute(at(minute)))
        with schema.open_change(engine) as connection:
            selftest.write_outcome(connection, at(minute), outcome, at(minute + 2))
    engine.dispose()
    return url


def check(url: str, minute: int) -> tuple[Level, str, str]:
    """Return what is found a minute."""
    found = check_selftest(url, at(minute))
    assert found.check == "self-test"
    return found.level, found.message, found.advice


def test_minutes_that_were_measured_as_injected_are_well(tmp_path: Path) -> None:
    """Their losses are added up."""
    url = compared(tmp_path, SelftestOutcome(3, 3, 0, ()), SelftestOutcome(2, 2, 0, ()))
    told = "2 of 2 minutes were measured as injected; lost messages found: 5 of 5, called lost by mistake: 0"
    assert check(url, 4) == (Level.OK, told, "")


def test_a_minute_that_failed_fails_for_an_hour(tmp_path: Path) -> None:
    """The newest problem is named; behind the hour nothing is left of it."""
    url = compared(tmp_path, SelftestOutcome(3, 3, 0, ()), SelftestOutcome(2, 1, 0, (PROBLEM,)))
    level, told, advice = check(url, 4)
    assert (level, advice) == (Level.FAIL, ADVICE)
    assert told.startswith("1 of 2 minutes were measured as injected; lost messages found: 4 of 5, ")
    assert told.endswith("; 2026-01-01T00:02:00Z: lost: injected were 2, measured 1")


def test_no_comparison_for_too_long_fails(tmp_path: Path) -> None:
    """Unless the monitor was stopped in good order."""
    url = compared(tmp_path, SelftestOutcome(3, 3, 0, ()))
    level, told, _ = check(url, 60)
    assert (level, told[:83]) == (
        Level.FAIL, "minutes are injected or compared no more, the newest is that of 2026-01-01T00:01:00"
    )  # fmt: skip
    engine = dialect.create_engine(url)
    with schema.open_change(engine) as connection:
        writer.set_values(connection, {"run": "a-run"})
    fencing.record_stop(engine, "a-run", at(2))
    assert check(url, 60)[0] is Level.OK


def test_before_the_first_comparison_there_is_a_note(tmp_path: Path) -> None:
    """Of a monitor that has just begun, and of one that never did."""
    assert check(compared(tmp_path), 2) == (Level.NOTE, "no minute of the last hour is compared yet", "")
    nothing = f"sqlite:///{tmp_path}/nothing.db"
    assert check(nothing, 2) == (Level.NOTE, "no monitor has written here yet", "start hopwatch run")


def test_a_store_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """The finding of the store is given under the name of this check."""
    (tmp_path / "odd.db").write_bytes(b"no database at all, but a file of some length" * 100)
    assert check_selftest(f"sqlite:///{tmp_path}/odd.db", at(1)).level is Level.FAIL


@pytest.mark.parametrize(("table", "expected"), [("", []), ("[selftest]\n", ["self-test"])])
def test_doctor_checks_a_self_test_that_is_configured(
    table: str, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the table nothing is said of it."""
    Workspace(tmp_path).configure(CONFIGURATION + table).run("doctor")
    lines = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line[:1].isalpha()]
    assert [name for name in lines if name == "self-test"] == expected


def test_minutes_are_kept_for_a_week(tmp_path: Path) -> None:
    """A newer one deletes those that are older; one that is recorded again begins anew."""
    engine = dialect.create_engine(compared(tmp_path, SelftestOutcome(3, 3, 0, ())))
    selftest.record_minute(engine, InjectedMinute(at(1) + selftest.KEPT_US))
    with schema.open_snapshot(engine) as connection:
        assert selftest.read_summary(connection, 0).minutes == 1
    selftest.record_minute(engine, InjectedMinute(at(1) + selftest.KEPT_US + WINDOW_US))
    with schema.open_snapshot(engine) as connection:
        assert selftest.read_summary(connection, 0).minutes == 0
        assert [one.start_us for one in selftest.read_unchecked(connection, at(2) + selftest.KEPT_US)] == [
            at(1) + selftest.KEPT_US,
            at(2) + selftest.KEPT_US,
        ]


def test_a_monitor_without_a_self_test_owes_no_comparison(tmp_path: Path) -> None:
    """One that was switched off is not overdue."""
    engine = dialect.create_engine(compared(tmp_path, SelftestOutcome(3, 3, 0, ())))
    selftest.record_end(engine)
    with schema.open_snapshot(engine) as connection:
        assert selftest.read_summary(connection, 0).since_us is None
    engine.dispose()
    assert check(f"sqlite:///{tmp_path}/store.db", 600)[0] is Level.NOTE
