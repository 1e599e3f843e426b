"""Tests of hosts that SIGTERM ends, as a rolling deploy does: what they stamped is sent, and they end as they would."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Final
from unittest.mock import Mock

import pytest

from hopwatch.probes import sigterm
from hopwatch.probes.contract.batch import BatchKind
from tests.support.probe_host import HOST, LAST_S, numbers, run, spooled, started

WAITS: Final = 'print("stamped", flush=True)\ntime.sleep(600)\n'
STUCK: Final = """
from hopwatch.testing import MemorySink
class Stuck(MemorySink):
    def send(self, record):
        if self.records:
            time.sleep(600)
        return super().send(record)
stuck = Probe("orders", "router", Stuck())
stuck.arrived(1, NOW_US)
"""


def terminated(spool: Path, script: str) -> int:
    """Start a host, send it SIGTERM each time it says a line, and return what it ended with."""
    with started(spool, script) as host:
        assert host.stdout is not None
        while host.stdout.readline():
            host.send_signal(signal.SIGTERM)
        return host.wait(LAST_S)


def test_a_host_without_a_handler_sends_all_and_ends_as_it_would(tmp_path: Path) -> None:
    """The last stamps and the bye are there, and its exit status is that of SIGTERM."""
    code = terminated(tmp_path, f"for n in range(9): probe.arrived(n, NOW_US)\n{WAITS}")
    (batches,) = spooled(tmp_path).values()
    assert code == -signal.SIGTERM
    assert (numbers(batches), batches[-1].kind) == (list(range(9)), BatchKind.BYE)


def test_a_host_that_is_terminated_while_it_stamps_and_sends_ends(tmp_path: Path) -> None:
    """A host that is terminated under any lock of its main thread ends, and all complete records are there."""
    script = """
print("stamping", flush=True)
number = 0
while True:
    number += 1
    probe.arrived(number, NOW_US)
    probe.flush()
"""
    assert terminated(tmp_path, script) == -signal.SIGTERM
    (batches,) = spooled(tmp_path).values()
    stamped = numbers(batches)
    assert stamped == list(range(1, len(stamped) + 1))


def test_a_sink_that_hangs_does_not_keep_a_host_from_ending(tmp_path: Path) -> None:
    """A sink that hangs delays the end of a host by a few seconds only."""
    assert terminated(tmp_path, STUCK + WAITS) == -signal.SIGTERM


def test_a_second_sigterm_ends_a_host_at_once(tmp_path: Path) -> None:
    """A second SIGTERM ends the host at once, whatever the first one waits for."""
    script = """
from hopwatch.probes import lifecycle, sigterm
def hang():
    print("closing", flush=True)
    time.sleep(600)
lifecycle.close_all, sigterm.MAX_WAIT_S = hang, 600
"""
    assert terminated(tmp_path, script + WAITS) == -signal.SIGTERM


def test_what_cannot_be_closed_ends_as_it_would(tmp_path: Path) -> None:
    """No thread can be started: nothing is sent, and nobody is kept from ending."""
    script = """
def fail(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = fail
"""
    assert terminated(tmp_path, script + WAITS) == -signal.SIGTERM


def test_a_worker_that_is_terminated_says_bye(tmp_path: Path) -> None:
    """The child of a fork that stamped is an instance of its own, which ends like any other."""
    script = """
pid = os.fork()
if not pid:
    probe.arrived(1, NOW_US)
    os.write(1, b"stamped\\n")
    time.sleep(600)
os.waitpid(pid, 0)
"""
    with started(tmp_path, script) as host:
        assert host.stdout is not None
        host.stdout.readline()
        (child,) = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGTERM)
        assert host.wait(LAST_S) == 0
    found = spooled(tmp_path).values()
    assert sorted(numbers(batches) for batches in found) == [[], [1]]
    assert [batches[-1].kind for batches in found] == [BatchKind.BYE] * 2


def test_threads_that_may_stamp_are_not_vouched_for(tmp_path: Path) -> None:
    """As at any end: all that was stamped is there, without a bye."""
    script = f"threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\nprobe.arrived(1, NOW_US)\n{WAITS}"
    assert terminated(tmp_path, script) == -signal.SIGTERM
    (batches,) = spooled(tmp_path).values()
    assert (numbers(batches), BatchKind.BYE in {batch.kind for batch in batches}) == ([1], False)


def test_a_handler_of_the_host_is_never_replaced(tmp_path: Path) -> None:
    """Set before or after, in Python or in C, or to ignore it; nor is it by a thread, or where it is not asked for."""
    script = """
import faulthandler, signal
from hopwatch.probes import sigterm
term = signal.SIGTERM
def own(*_): pass
def made(**options):
    Probe("orders", "router", "spool:" + sys.argv[1], **options).close()
    return signal.getsignal(term)
for kept in (own, signal.SIG_IGN):
    signal.signal(term, kept)
    assert made() is kept
signal.signal(term, signal.SIG_DFL)
assert made(close_on_sigterm=False) is signal.SIG_DFL
thread = threading.Thread(target=made)
thread.start(); thread.join()
assert signal.getsignal(term) is signal.SIG_DFL
faulthandler.register(term)
assert made() is signal.SIG_DFL
faulthandler.unregister(term)
assert made() is sigterm.close_and_end
signal.signal(term, own)
assert made() is own
"""
    run(tmp_path, script, host=HOST.replace("probe = ", "# probe = "))


def test_a_handler_that_calls_the_one_before_it_decides_itself(tmp_path: Path) -> None:
    """The host ends when and as it wants to; its probes are closed then."""
    script = """
import signal
before = signal.getsignal(signal.SIGTERM)
signal.signal(signal.SIGTERM, lambda *given: before(*given))
os.kill(os.getpid(), signal.SIGTERM)
probe.arrived(1, NOW_US)
"""
    run(tmp_path, script)
    (batches,) = spooled(tmp_path).values()
    assert (numbers(batches), batches[-1].kind) == ([1], BatchKind.BYE)


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("os.getpid", Mock(return_value=1)),
        ("signal.getsignal", Mock(return_value=None)),
        ("signal.signal", Mock(side_effect=ValueError("signal only works in main thread of the main interpreter"))),
        ("threading.main_thread", Mock(return_value=threading.Thread())),
    ],
    ids=["process 1", "another language's handler", "sub-interpreter", "another thread"],
)
def test_where_sigterm_is_not_ours_to_handle_it_is_left(
    where: str, what: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Process 1 ignores it by default, and would go on without its probes; the others cannot or must not."""
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(f"hopwatch.probes.sigterm.{where}", what)
    sigterm.close_at_sigterm()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGTERM) is before
