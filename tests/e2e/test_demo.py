"""The demo as a newcomer runs it, shortened: real processes, real sockets, the real monitor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

PATIENCE_S: Final = 600
DEMO: Final = (sys.executable, "-m", "hopwatch", "demo", "--minutes", "0.4", "--rate", "500", "--no-dashboard")


def _demo(folder: Path, *faults: str) -> subprocess.CompletedProcess[str]:
    command = [*DEMO, "--workdir", str(folder / "demo"), *faults]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.soak  # test_documented.py runs the demo of README by default
def test_what_the_demo_injects_is_what_is_measured(tmp_path: Path) -> None:
    """Drops are named to the id, filters, refusals and copies counted; the last line says so, and the exit code."""
    ended = _demo(
        tmp_path,
        "--drop",
        "router=0.02",
        "--filter",
        "norm=0.01",
        "--reject",
        "norm=0.01",
        "--duplicate",
        "ingest=0.01",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "injected = measured" in ended.stdout


@pytest.mark.soak  # test_gate.py and the demo without a gate run by default
def test_behind_a_gate_bad_events_are_rejected_and_not_lost(tmp_path: Path) -> None:
    """Each kind of them shows with its reason; what router drops shows as lost there."""
    ended = _demo(tmp_path, "--gate", "--drop", "router=0.02")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ["lost", "ids", "gate", "0", "=", "0", "ok"] in lines
    (rejected,) = [line for line in lines if line[:2] == ["rejected", "gate"]]
    (messages,) = [line for line in lines if line[:1] == ["messages"]]
    assert 0.005 < int(rejected[2]) / int(messages[1].replace(",", "")) < 0.015
    assert "such as: /data/distance Input should be a valid integer" in ended.stdout
    assert "injected = measured" in ended.stdout
