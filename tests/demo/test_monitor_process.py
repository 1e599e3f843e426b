"""Tests of the monitor's process, and of what is read of its store."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from hopwatch.demo.layout import Layout, create_layout
from hopwatch.demo.measurements import select_windows
from hopwatch.demo.monitor_process import MonitorDiedError, MonitorProcess, StoredResults
from hopwatch.demo.stream import NODES
from hopwatch.monitor.store import dialect, schema

SLEEPER = "print('up', flush=True)\nimport signal\nsignal.pause()"
STUBBORN = (
    "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\nwhile True: signal.pause()"
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return the files of a run."""
    return create_layout(tmp_path / "run")


def process_of(layout: Layout, program: str) -> MonitorProcess:
    """Return a monitor process that runs another program."""
    monitor = MonitorProcess(layout)
    monitor._command = [sys.executable, "-c", program]
    return monitor


def wait_for_log(layout: Layout) -> None:
    """Wait until the program has said something."""
    while not (log := layout.log("monitor")).exists() or not log.read_text():
        threading.Event().wait(0.01)


def test_it_is_hopwatch_run_over_the_files_of_the_run(layout: Layout) -> None:
    """The very command that a user would give."""
    expected = [
        "-m",
        "hopwatch",
        "run",
        "--config",
        str(layout.config),
        "--workdir",
        str(layout.checkpoints),
    ]
    assert MonitorProcess(layout)._command == [sys.executable, *expected]


def test_it_is_ended_by_sigterm(layout: Layout) -> None:
    """While it runs nothing is said; a stop ends it, and a second one does no harm."""
    with process_of(layout, SLEEPER) as monitor:
        wait_for_log(layout)
        monitor.check()
        process = monitor._process
        assert process is not None
        monitor.stop()
        assert process.returncode == -15
        monitor.stop()
        monitor.check()


def test_a_monitor_that_will_not_end_is_killed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM first, and where that is ignored SIGKILL."""
    monkeypatch.setattr("hopwatch.demo.monitor_process.STOP_WITHIN_S", 0.1)
    with process_of(layout, STUBBORN) as monitor:
        wait_for_log(layout)
        process = monitor._process
        assert process is not None
    assert process.returncode == -9


@pytest.mark.parametrize(("code", "exit_code"), [(2, 2), (3, 3), (1, 70), (0, 70)])
def test_a_monitor_that_ended_is_told(layout: Layout, code: int, exit_code: int) -> None:
    """The reader learns its exit code, its last words and its log; a reason it gave becomes the demo's."""
    with process_of(layout, f"print('hopwatch: no Java'); raise SystemExit({code})") as monitor:
        assert monitor._process is not None
        monitor._process.wait()
        with pytest.raises(MonitorDiedError) as raised:
            monitor.check()
    log = layout.log("monitor")
    assert str(raised.value) == (
        f"the monitor ended by itself with exit code {code}; its last words: hopwatch: no Java ({log})"
    )
    assert raised.value.exit_code == exit_code


def test_before_the_monitor_has_a_store_there_is_no_report(layout: Layout) -> None:
    """Asking too early is no error, and makes no file."""
    results = StoredResults(layout.store_url)
    assert results.report() is None
    assert results.measured() is None
    assert [path.name for path in layout.folder.glob("hopwatch.db*")] == []


def test_an_empty_file_is_no_store_yet(layout: Layout) -> None:
    """Between making the file and making the tables the monitor has nothing to say."""
    (layout.folder / "hopwatch.db").touch()
    assert StoredResults(layout.store_url).report() is None


def test_an_empty_store_has_no_windows(layout: Layout) -> None:
    """With tables and nothing in them the report is there, and empty."""
    schema.prepare_store(dialect.create_engine(layout.store_url))
    results = StoredResults(layout.store_url)
    report, measured = results.report(), results.measured()
    assert report is not None
    assert measured is not None
    assert select_windows(report) == measured.windows == []
    assert [measured.lost_ids(node) for node in NODES] == [set()] * 4
    assert measured.refused == 0
