"""Monitor that runs in a process group of its own, over a spool of made traffic."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tests.support.spool_traffic import config

PATIENCE_S: Final = 240


@contextmanager
def running(
    folder: Path, module: str = "hopwatch", *flags: str, deadline: str = ""
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Yield a job in a new group, and what it says; one that does not end is killed, with all that it has started."""
    spool = folder / "spool"
    spool.mkdir(exist_ok=True)
    (folder / "hopwatch.toml").write_text(config(spool, folder, deadline=deadline))
    command = [sys.executable, "-m", module, "run", "--config", str(folder / "hopwatch.toml"), *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as job:
        assert job.stderr is not None
        last = threading.Timer(PATIENCE_S, end, (job.pid,))
        last.start()
        try:
            yield job, job.stderr
        finally:
            last.cancel()
            end(job.pid)


def await_line(stderr: IO[str], words: str) -> None:
    """Read up to the line that begins so; before it a job says what it waits for."""
    assert any(line.startswith(words) for line in iter(stderr.readline, ""))


def end(group: int) -> None:
    """Kill all that is left of a group."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
