"""Tests of what a process and a folder take."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.footprint import Footprint, cpu_s, family, folder_bytes, forget_peak, memory_bytes

MEGABYTE = 1024 * 1024


def test_the_peak_keeps_the_most_that_was_seen(tmp_path: Path) -> None:
    """The peak keeps the largest memory and disk that were seen, also after they were freed."""
    peak, kept = Footprint(), tmp_path / "kept"
    kept.write_bytes(bytes(MEGABYTE))
    held = os.urandom(64 * MEGABYTE)
    peak.record_peak(os.getpid(), tmp_path)
    assert peak.memory_bytes > len(held)
    assert 0 < peak.mapped_bytes < peak.memory_bytes
    kept.unlink()
    seen = peak.memory_bytes
    del held
    peak.record_peak(os.getpid(), tmp_path)
    assert peak.memory_bytes == seen
    assert peak.disk_bytes == MEGABYTE


def test_the_family_has_the_children_and_no_stranger(tmp_path: Path) -> None:
    """A process below this one is counted while it is there, and nothing of it afterwards."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in set(family(os.getpid()))
        assert os.getppid() not in set(family(os.getpid()))
        child.communicate(b"\n")
    assert child.pid not in set(family(os.getpid()))
    gone = Footprint()
    gone.record_peak(child.pid, tmp_path)
    assert gone.memory_bytes == 0


def test_a_folder_takes_its_blocks(tmp_path: Path) -> None:
    """All files below count, with the blocks that they take."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x")
    assert folder_bytes(tmp_path) == (tmp_path / "a" / "b" / "file").stat().st_blocks * 512 > 0


def test_memory_is_what_linux_says() -> None:
    """Now at most as much as ever, and a peak that is forgotten begins again."""
    held = os.urandom(64 * MEGABYTE)
    assert 0 < memory_bytes("VmRSS") <= memory_bytes("VmHWM")
    seen = memory_bytes("VmHWM")
    del held
    forget_peak()
    assert memory_bytes("VmHWM", os.getpid()) < seen - 32 * MEGABYTE


def test_processor_time_is_that_of_a_process() -> None:
    """Ours grows as we work, by what our own clock says too, to a tick or two."""
    before_s, began_s = cpu_s(), time.process_time()
    while time.process_time() - began_s < 0.1:
        pass
    assert cpu_s(os.getpid()) - before_s == pytest.approx(0.1, abs=0.03)
