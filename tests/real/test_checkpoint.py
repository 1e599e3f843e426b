"""Tests of a checkpoint that was damaged: replayed exactly, refused by name, or begun anew when that is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.real.monitor_process import Monitor, Report, differences
from tests.real.program_folder import Workplace
from tests.support.spool_traffic import config

WINDOWS = 8


@pytest.fixture
def copied(undisturbed_job: Path, tmp_path: Path) -> Monitor:
    """Return a monitor on a copy of the folder of one that has judged a spool and was stopped, not started."""
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed_job, folder)
    return Monitor(_workplace(folder))


def _workplace(folder: Path) -> Workplace:
    work = Workplace(folder, "spool:./spool")
    (folder / "hopwatch.toml").write_text(config(folder / "spool", folder))
    return work


def _judged(monitor: Monitor) -> Report:
    reports: list[Report] = []

    def is_through() -> bool:
        reports.append(monitor.work.reported())
        found = [window for one in reports[-1]["streams"] for window in one["windows"][:WINDOWS]]
        return bool(found) and all(window["status"] == "FINAL" and not window["in_flight"] for window in found)

    monitor.until(is_through, "the last final window")
    return reports[-1]


def _newest(folder: Path) -> Path:
    return max((one for one in folder.iterdir() if one.name.isdigit()), key=lambda one: int(one.name))


@pytest.mark.soak  # test_killed.py dies there by default
def test_without_its_last_commit_a_batch_is_replayed_exactly(
    copied: Monitor, undisturbed_report: dict[str, Any]
) -> None:
    """As after a crash between the store's commit and Spark's: 0 cells differ."""
    checkpoint = next(copied.work.folder.rglob("checkpoint"))
    commit = _newest(checkpoint / "commits")
    commit.unlink()
    copied.start()
    # All windows are in the store already: the batch is through once Spark has noted it again.
    copied.until(commit.exists, "the batch that is replayed")
    got = _judged(copied)
    copied.stop()
    assert differences(got["streams"], undisturbed_report["streams"]) == []


def test_without_a_checkpoint_the_monitor_starts_only_when_told_to_begin_anew(copied: Monitor) -> None:
    """Without its checkpoint the monitor refuses to start, and says what was found and what beginning anew costs."""
    checkpoint = next(copied.work.folder.rglob("checkpoint"))
    shutil.rmtree(checkpoint)
    refused = copied.work.run("run")
    assert refused.returncode == 3
    assert refused.stderr.startswith("hopwatch: the store was written up to batch ")
    assert refused.stderr.endswith(f"put the store and {checkpoint} aside together, or pass --begin-anew\n")
    copied.start("--begin-anew")
    copied.until(lambda: "watching" in copied.work.words(), "the stream")
    copied.stop()
    assert "hopwatch: beginning anew, " in copied.work.words()
    assert "windows of results are dropped; those whose records " in copied.work.words()


def test_a_truncated_file_of_the_checkpoint_stops_the_monitor_with_a_name(copied: Monitor) -> None:
    """Exit 3: the checkpoint is named, and what to do."""
    checkpoint = next(copied.work.folder.rglob("checkpoint"))
    _newest(checkpoint / "offsets").write_text("v1\n")
    copied.start()
    assert copied.process is not None
    assert copied.process.wait(120) == 3
    assert f"hopwatch: the checkpoint {checkpoint} is damaged, its file offsets/" in copied.work.words()
    assert "Traceback" not in copied.work.words()
