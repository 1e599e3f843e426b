"""Tests of a checkpoint that was damaged: replayed exactly, refused by name, or begun anew when that is asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.real.monitor_process import Monitor, Report, differences
from tests.real.program_folder import Workplace
from tests.support.spool_traffic import config, traffic

WINDOWS = 8


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """Return the folder of a monitor that has judged a spool and was stopped, and its report."""
    folder = tmp_path_factory.mktemp("ran")
    monitor = Monitor(_workplace(folder)).start()
    for segment in traffic(seed=7):
        segment.write(folder / "spool")
    report = _judged(monitor)
    monitor.stop()
    return folder, report


@pytest.fixture
def copied(ran: tuple[Path, Report], tmp_path: Path) -> Monitor:
    """Return a monitor on a copy of that folder, not started."""
    folder = tmp_path / "copy"
    shutil.copytree(ran[0], folder)
    (folder / "words.log").unlink()
    return Monitor(_workplace(folder))


def _workplace(folder: Path) -> Workplace:
    (folder / "spool").mkdir(exist_ok=True)
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


def test_without_its_last_commit_a_batch_is_replayed_exactly(copied: Monitor, ran: tuple[Path, Report]) -> None:
    """As after a crash between the store's commit and Spark's: 0 cells differ."""
    checkpoint = next(copied.work.folder.rglob("checkpoint"))
    _newest(checkpoint / "commits").unlink()
    copied.start()
    got = _judged(copied)
    copied.stop()
    assert differences(got["streams"], ran[1]["streams"]) == []


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
