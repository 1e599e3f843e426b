"""The demo as a newcomer runs it, shortened: real processes, real sockets, the real monitor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

PATIENCE_S: Final = 300
DEMO: Final = (sys.executable, "-m", "monitor.cli.main", "demo", "--minutes", "0.4", "--rate", "500", "--no-dashboard")


def _demo(folder: Path, *faults: str) -> subprocess.CompletedProcess[str]:
    command = [*DEMO, "--workdir", str(folder / "demo"), *faults]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


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
