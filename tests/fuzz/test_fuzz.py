"""Runs each target for some seconds; FUZZ_SECONDS=600 for ten minutes each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.repository import ROOT

SECONDS: Final = int(os.environ.get("FUZZ_SECONDS", "2"))


@pytest.mark.parametrize("target", ["envelope", "lint"])
@pytest.mark.timeout(SECONDS + 300)
def test_whatever_strangers_send_crashes_nothing(target: str, tmp_path: Path) -> None:
    """Any input is read or refused with an error of its own: no other exception, no signal, no 2 GB, no 25 s."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", f"tests.fuzz.{target}", f"-max_total_time={SECONDS}", "-max_len=4096", "-seed=1"),
            *("-timeout=25", "-rss_limit_mb=2048", f"-artifact_prefix={tmp_path}/"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4_000:]
    assert f"in {SECONDS + 1} second(s)" in run.stderr
