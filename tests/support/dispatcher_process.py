"""A dispatcher in a process of its own, which dies between "send" and "sent"."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sqlalchemy import Engine


def run(engine: Engine, file: Path, dies_at: int, *alertmanager: str) -> int:
    """Run a dispatcher's process until it is killed, or nothing is due; return how it ended."""
    url = engine.url.render_as_string(hide_password=False)
    command = [
        sys.executable,
        "-m",
        "tests.alerts.delivery.dying_dispatcher",
        url,
        str(file),
        str(dies_at),
        *alertmanager,
    ]
    return subprocess.run(command, check=False, timeout=60).returncode
