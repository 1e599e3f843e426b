"""The service of the demo as a newcomer runs it, shortened: a broker of its own, receivers that fail, kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from servers.process import PATIENCE_S
from tests.real.program_folder import ROOT

SEED: Final = 66
"""With it both receivers refuse something of their first request, however few requests there are."""
RUN: Final = (sys.executable, "-m", "hopwatch", "demo", "--service", "--no-dashboard")


def test_no_message_is_lost_and_the_report_says_what_the_account_does(tmp_path: Path) -> None:
    """Receivers fail in all ways, one is down, three processes are killed; no broker and no topic is left behind."""
    flags = f"--messages 3000 --kills 3 --seed {SEED} --fail 0.2 --down 2"
    command = [*RUN, *flags.split(), "--workdir", str(tmp_path / "run")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines()]
    assert ended.stdout.count(" is killed (SIGKILL)") == 3
    for what in ("phantom 0 = 0 ok", "taken and refused 0 = 0 ok", "lost without a fault 0 = 0 surely ok"):
        assert what.split() in lines, ended.stdout
    counts = {tuple(line[:2]): line[2].replace(",", "") for line in lines if len(line) > 3}
    received = ("taken", "mainline"), ("taken", "others"), ("refused", "mainline"), ("refused", "others")
    assert sum(int(counts[one]) for one in received) == int(counts["acknowledged", "gate"]) > 2_900
    assert all(int(counts[one]) > 0 for one in received), ended.stdout
    assert not (tmp_path / "run" / "brokers").exists()
