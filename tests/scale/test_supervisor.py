"""Tests of the supervisor, with real processes and a clock that the test moves."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from hopwatch.scale.restart import MAX_WAIT_S
from hopwatch.scale.supervisor import Supervisor
from tests.scale.manual_clock import ManualClock

SLEEPING = (sys.executable, "-c", "import time; time.sleep(600)")
DYING = (sys.executable, "-c", "raise SystemExit(7)")
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
open(sys.argv[1], 'w').write(str(child.pid))
time.sleep(600)
"""
"""A process that does not end by SIGTERM, with a child that does not know of it."""


SLOW = """
import os, pathlib, signal, sys, time
mine = pathlib.Path(sys.argv[1]) / str(os.getpid())
def end(*_):
    time.sleep(0.3)
    mine.with_suffix('.ended').touch()
    sys.exit()
signal.signal(signal.SIGTERM, end)
mine.with_suffix('.ready').touch()
time.sleep(600)
"""
"""A process that finishes its work before it ends by SIGTERM."""


@pytest.fixture
def clock() -> ManualClock:
    """Return the clock."""
    return ManualClock()


@pytest.fixture
def words() -> list[str]:
    """Return what the supervisor has said."""
    return []


@pytest.fixture
def supervise(clock: ManualClock, words: list[str]) -> Iterator[Callable[..., Supervisor]]:
    """Yield a function that makes a supervisor of a command, whose processes end with the test."""
    made: list[Supervisor] = []

    def build(*command: str) -> Supervisor:
        made.append(Supervisor(command, clock, words.append, patience_s=30))
        return made[-1]

    yield build
    for one in made:
        one.resize(0)
        clock.move(1_000)
        one.close(lambda _: time.sleep(0.01))


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most 20 s."""
    give_up_s = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < give_up_s
        time.sleep(0.01)


def has_restarted(supervisor: Supervisor, before: int) -> bool:
    """Let it look after its processes, and return whether more ended by themselves than before."""
    supervisor.look_after()
    return supervisor.restarts > before


def has_none_ending(supervisor: Supervisor) -> bool:
    """Let it look after its processes, and return whether all that were asked to end have."""
    supervisor.look_after()
    return supervisor.ending == 0


def is_alive(pid: int) -> bool:
    """Return whether a process is there and is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    return False


def test_it_runs_as_many_as_it_is_asked_for(supervise: Callable[..., Supervisor]) -> None:
    """More start, and the newest end."""
    supervisor = supervise(*SLEEPING)
    supervisor.resize(3)
    first = supervisor.running
    assert len(first) == 3
    supervisor.resize(1)
    assert supervisor.running == first[:1]
    assert supervisor.ending == 2
    until(partial(has_none_ending, supervisor))
    assert [is_alive(pid) for pid in first] == [True, False, False]
    assert (supervisor.restarts, supervisor.kills) == (0, 0)


def test_each_process_leads_a_session(supervise: Callable[..., Supervisor]) -> None:
    """Ctrl-C at a terminal is the supervisor's alone."""
    supervisor = supervise(*SLEEPING)
    supervisor.resize(1)
    (pid,) = supervisor.running
    assert os.getsid(pid) == pid != os.getsid(0)


def test_one_that_dies_at_once_is_started_again_with_longer_waits(
    supervise: Callable[..., Supervisor], clock: ManualClock, words: list[str]
) -> None:
    """1, 2, 4 … 60 s; not before, and what it ended with is said."""
    supervisor = supervise(*DYING)
    supervisor.resize(1)
    waits = []
    for _ in range(8):
        ended = supervisor.restarts
        until(partial(has_restarted, supervisor, ended))
        wait_s = 0
        while not supervisor.running:
            clock.move(1)
            wait_s += 1
            supervisor.look_after()
        waits.append(wait_s)
    assert waits == [1, 2, 4, 8, 16, 32, MAX_WAIT_S, MAX_WAIT_S]
    assert words[0].endswith("ended with exit code 7 after 0.0 s: starting it again in 1 s")


def test_one_that_ran_for_long_is_started_again_at_once(
    supervise: Callable[..., Supervisor], clock: ManualClock, words: list[str]
) -> None:
    """The signal that ended it is said."""
    supervisor = supervise(*SLEEPING)
    supervisor.resize(1)
    (pid,) = supervisor.running
    clock.move(3_600)
    os.kill(pid, 9)
    until(partial(has_restarted, supervisor, 0))
    assert len(supervisor.running) == 1
    assert supervisor.running != (pid,)
    assert words == [f"process {pid} ended by SIGKILL after 3600.0 s: starting it again now"]


def test_one_that_does_not_end_is_killed_with_its_children(
    supervise: Callable[..., Supervisor], clock: ManualClock, words: list[str], tmp_path: Path
) -> None:
    """After its patience, and not before."""
    told = tmp_path / "child"
    supervisor = supervise(sys.executable, "-c", STUBBORN, str(told))
    supervisor.resize(1)
    (pid,) = supervisor.running
    until(lambda: told.exists() and bool(told.read_text("utf-8")))
    child = int(told.read_text("utf-8"))
    supervisor.resize(0)
    clock.move(29)
    supervisor.look_after()
    assert (is_alive(pid), supervisor.kills) == (True, 0)
    clock.move(1)
    until(partial(has_none_ending, supervisor))
    until(lambda: not is_alive(child))
    assert supervisor.kills == 1
    assert words == [f"process {pid} did not end in 30 s: killed"]


def test_closing_waits_for_the_last_process(supervise: Callable[..., Supervisor], tmp_path: Path) -> None:
    """One that takes its time to end is waited for, and does what it has to."""
    supervisor = supervise(sys.executable, "-c", SLOW, str(tmp_path))
    supervisor.resize(2)
    pids = supervisor.running
    until(lambda: all((tmp_path / f"{pid}.ready").exists() for pid in pids))
    supervisor.close(lambda _: time.sleep(0.01))
    assert all((tmp_path / f"{pid}.ended").exists() for pid in pids)
    assert [is_alive(pid) for pid in pids] == [False, False]


def test_a_command_that_cannot_be_started_is_tried_again(
    supervise: Callable[..., Supervisor], clock: ManualClock, words: list[str]
) -> None:
    """A command that cannot be started is tried again, with the waits announced."""
    supervisor = supervise("/nowhere/at/all")
    supervisor.resize(1)
    clock.move(1)
    supervisor.look_after()
    assert supervisor.running == ()
    assert words == [
        "'/nowhere/at/all' cannot be started: No such file or directory: starting it again in 1 s",
        "'/nowhere/at/all' cannot be started: No such file or directory: starting it again in 2 s",
    ]
