"""Programs that tests start as forks, beside the same ones started as a user does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from tests.repository import ROOT
from tests.support import program
from tests.support.program import Program, ProgramProcess, run_program

PATIENCE_S: Final = 60.0
FACTS: Final = ("tests.e2e.process_facts", "a b", "--flag=ü", "7")
ENDLESS: Final = ("http.server", "--bind", "127.0.0.1", "0")


def environ() -> dict[str, str]:
    """Return an environment with a variable of its own."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "FACT": "so"}


def test_a_fork_finds_what_a_program_does(tmp_path: Path) -> None:
    """Arguments, folder, environment, handlers of signals, streams and exit code are the same."""
    started = subprocess.run(
        [sys.executable, "-m", *FACTS], cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False
    )
    forked = run_program(FACTS, folder=tmp_path, environ=environ(), timeout=PATIENCE_S)
    assert started.returncode == 7, started.stderr
    assert (forked.returncode, forked.stdout, forked.stderr) == (7, started.stdout, started.stderr)


def test_what_a_fork_prints_is_read_to_its_end(tmp_path: Path) -> None:
    """With both streams in one; in a session of its own if that is asked for."""
    with Program(FACTS, folder=tmp_path, environ=environ(), has_new_session=True) as forked:
        told, _ = forked.communicate(PATIENCE_S)
    assert forked.returncode == 7
    assert told.endswith(b"words\n") or told.startswith(b"words\n")
    assert b'"is a leader": true' in told


def test_a_fork_goes_on_until_a_signal_ends_it(tmp_path: Path) -> None:
    """Its exit code says which; one that has a group is killed with it, also as soon as it is started."""
    with (tmp_path / "log").open("wb") as log:
        running = [Program(ENDLESS, out=log) for _ in range(2)]
    with pytest.raises(subprocess.TimeoutExpired):
        running[0].wait(0.1)
    assert [one.poll() for one in running] == [None, None]
    running[0].kill()
    running[1].terminate()
    assert [one.wait(PATIENCE_S) for one in running] == [-signal.SIGKILL, -signal.SIGTERM]
    running[0].kill()
    for _ in range(20):
        server = ProgramProcess(ENDLESS, tmp_path / "log")
        server.kill()
        assert server.exit_code == -signal.SIGKILL


def test_a_fork_server_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the module that says why."""
    monkeypatch.setattr(program, "_server", SimpleNamespace(ask=lambda *_: None))
    with pytest.raises(RuntimeError, match=r"^the fork server ended: tests\.support\.fork_server says why on stderr$"):
        Program(ENDLESS)
