"""Tests of processes that end in every way: what was there is known, what may be missing is not vouched for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from hopwatch.probes.contract.batch import Batch, BatchKind
from tests.support.probe_host import HOST, LAST_S, ROOT, numbers, run, spooled

ENDS: Final = {
    "killed": "os.kill(os.getpid(), 9)",
    "terminated": "os.kill(os.getpid(), 15); time.sleep(60)",
    "left": "os._exit(0)",
    "replaced": 'os.execv("/bin/true", ["true"])',
    "aborted": "os.abort()",
}


def ended(spool: Path, script: str, *, host: str = HOST) -> None:
    """Run a host to its end, however that comes."""
    command = [sys.executable, "-c", host + script, str(spool)]
    subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=LAST_S)


def hello_of(batches: list[Batch]) -> tuple[int, BatchKind, int, bool]:
    """Return number, kind and count of an instance's first batch, and whether it completes the epoch and no more."""
    first = batches[0]
    return first.seq, first.kind, first.count, first.complete_through_us == first.epoch_us


HELLO: Final = (0, BatchKind.HEARTBEAT, 0, True)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("stamp", ["pass", "probe.arrived(1, NOW_US)"])
def test_a_probe_that_ends_at_once_was_there(tmp_path: Path, end: str, stamp: str) -> None:
    """Its hello can be read, whatever ended it as soon as it was made, or after its first stamp."""
    ended(tmp_path, f"{stamp}\n{end}")
    assert [hello_of(batches) for batches in spooled(tmp_path).values()] == [HELLO]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    "stamp",
    [
        "probe.arrived(1, NOW_US)",
        "probe.arrived_many([1], [NOW_US])",
        "probe.passing(1, NOW_US).__enter__()",
        "probe.rejected(1, NOW_US)",
        'probe.missed("unreadable")',
    ],
)
def test_the_child_of_a_fork_that_ends_at_once_was_there(tmp_path: Path, end: str, stamp: str) -> None:
    """A child that ends at once has announced itself before its first stamp returned."""
    ended(tmp_path, f"pid = os.fork()\nif not pid:\n    {stamp}\n    {end}\nos.waitpid(pid, 0)")
    assert [hello_of(batches) for batches in spooled(tmp_path).values()] == [HELLO] * 2


@pytest.mark.parametrize("end", [*ENDS.values(), "sys.exit(0)", "probe.flush(); probe.close(); os._exit(0)"])
def test_children_that_stamp_nothing_leave_no_trace(tmp_path: Path, end: str) -> None:
    """A host that forks for every request, or to run a program, has one instance: its own."""
    script = f"""
for _ in range(5):
    pid = os.fork()
    if not pid:
        assert threading.active_count() == 1
        {end}
    os.waitpid(pid, 0)
probe.arrived(1, NOW_US)
"""
    run(tmp_path, script)
    (batches,) = spooled(tmp_path).values()
    assert (numbers(batches), batches[-1].kind) == ([1], BatchKind.BYE)


def test_a_daemon_that_forks_twice_is_an_instance_where_it_stamps(tmp_path: Path) -> None:
    """The process between leaves no trace; the daemon says hello and bye, those before it no bye."""
    script = """
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for number in range(3):
    probe.arrived(number, NOW_US)
"""
    run(tmp_path, script)
    daemons = [batches for batches in spooled(tmp_path).values() if numbers(batches)]
    assert [hello_of(batches) for batches in spooled(tmp_path).values()] == [HELLO] * 2
    assert [(numbers(batches), batches[-1].kind) for batches in daemons] == [([0, 1, 2], BatchKind.BYE)]


def test_many_threads_begin_one_instance_in_a_child(tmp_path: Path) -> None:
    """The first thread to stamp begins the instance, the others wait, and all stamps are sent."""
    script = """
pid = os.fork()
if not pid:
    together = threading.Barrier(8)
    def work(number):
        together.wait()
        probe.arrived(number, NOW_US)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    run(tmp_path, script)
    parent, child = sorted(spooled(tmp_path).values(), key=lambda batches: len(numbers(batches)))
    assert (numbers(parent), sorted(numbers(child))) == ([], list(range(8)))
    assert [hello_of(child), child[-1].kind] == [HELLO, BatchKind.BYE]


def test_a_fork_while_other_threads_stamp_and_send_hangs_nobody(tmp_path: Path) -> None:
    """A child forked under any lock stamps and ends, without the stamps of its parent."""
    script = """
going_on = True
def work():
    while going_on:
        probe.arrived(1, NOW_US)
        probe.flush()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(20):
    pid = os.fork()
    if not pid:
        probe.arrived(100 + number, NOW_US)
        probe.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
going_on = False
"""
    run(tmp_path, script)
    children = [numbers(batches) for batches in spooled(tmp_path).values() if 1 not in numbers(batches)]
    assert sorted(children) == [[100 + number] for number in range(20)]


WORKER = """
import multiprocessing, sys, threading, time
from hopwatch import Probe

def work(probe, stamped, is_followed):
    probe.arrived(1, time.time_ns() // 1_000)
    if is_followed:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    stamped.set()
    if not is_followed:
        time.sleep(60)

if __name__ == "__main__":
    probe = Probe("orders", "router", "spool:" + sys.argv[1])
    context = multiprocessing.get_context("fork")
    stamped, is_followed = context.Event(), sys.argv[2] == "followed"
    worker = context.Process(target=work, args=(probe, stamped, is_followed))
    worker.start()
    stamped.wait(30)
    if not is_followed:
        worker.kill()
    worker.join()
"""


@pytest.mark.parametrize("how", ["killed", "followed"])
def test_a_worker_that_is_killed_or_leaves_a_thread_says_no_bye(tmp_path: Path, how: str) -> None:
    """A killed worker was there; one whose threads may go on does not vouch for them."""
    script, spool = tmp_path / "worker.py", tmp_path / "spool"
    script.write_text(WORKER)
    command = [sys.executable, str(script), str(spool), how]
    subprocess.run(command, check=True, capture_output=True, timeout=LAST_S, env={"PYTHONPATH": str(ROOT)})
    found = list(spooled(spool).values())
    assert [hello_of(batches) for batches in found] == [HELLO] * 2
    assert sorted(batches[-1].kind is BatchKind.BYE for batches in found) == [False, True]


GOING_ON = """
stamped = os.open(sys.argv[1] + ".stamped", os.O_WRONLY | os.O_CREAT)
def work():
    number = 0
    while True:
        number += 1
        probe.arrived(number, NOW_US)
        os.write(stamped, b"%d %d\\n" % (number, time.time_ns() // 1_000))
threading.Thread(target=work, daemon=True).start()
time.sleep({seconds})
"""


@pytest.mark.parametrize("seconds", [0.05, 0.3])
@pytest.mark.parametrize("end", ["", "probe.close(bye=False)"])
def test_while_a_thread_may_stamp_nothing_is_vouched_for_beyond_the_silence(
    tmp_path: Path, seconds: float, end: str
) -> None:
    """There is no bye, and each message whose stamp was taken by the last complete moment is there, or a drop."""
    spool = tmp_path / "spool"
    done = run(spool, GOING_ON.format(seconds=seconds) + end)
    (batches,) = spooled(spool).values()
    assert BatchKind.BYE not in {batch.kind for batch in batches}
    through_us = max(batch.complete_through_us for batch in batches)
    stamped = [map(int, line.split()) for line in Path(f"{spool}.stamped").read_text().splitlines()]
    missing = {number for number, at_us in stamped if at_us <= through_us} - set(numbers(batches))
    # A thread that stamps without a pause can fill the queue: what is refused then is reported by number.
    assert len(missing) <= sum(drop.count for batch in batches for drop in batch.drops)
    assert ("as threads are alive that may stamp (Thread-1 (work))" in done.stderr) == (not end)


def test_a_thread_of_a_probe_keeps_no_bye_from_being_said(tmp_path: Path) -> None:
    """Many probes, whose threads are ours, and a thread that has ended: all of them say bye."""
    script = """
more = [Probe("orders", f"n{number}", "spool:" + sys.argv[1]) for number in range(4)]
thread = threading.Thread(target=probe.arrived, args=(1, NOW_US), daemon=True)
thread.start()
thread.join()
"""
    run(tmp_path, script)
    assert [batches[-1].kind for batches in spooled(tmp_path).values()] == [BatchKind.BYE] * 5


def test_what_is_stamped_while_the_interpreter_is_torn_down_hangs_nobody(tmp_path: Path) -> None:
    """No thread runs any more, and an object may still handle a message as it is deleted: that has no bye either."""
    script = """
class Last:
    def __del__(self):
        probe.arrived(2, NOW_US)
last = Last()
last.itself = last
probe.arrived(1, NOW_US)
"""
    run(tmp_path, script)
    found = list(spooled(tmp_path).values())
    assert [hello_of(batches) for batches in found] == [HELLO] * 2
    assert sorted(batches[-1].kind is BatchKind.BYE for batches in found) == [False, True]


def test_what_is_stamped_after_the_bye_is_an_instance_without_one(tmp_path: Path) -> None:
    """Functions that a host registered before it imported probes run last, and may still handle messages."""
    host = "import atexit\natexit.register(lambda: probe.arrived(2, NOW_US))\n" + HOST
    run(tmp_path, "probe.arrived(1, NOW_US)", host=host)
    found = list(spooled(tmp_path).values())
    assert [hello_of(batches) for batches in found] == [HELLO] * 2
    assert sorted((numbers(batches), batches[-1].kind) for batches in found)[1] == ([1], BatchKind.BYE)
    assert [batches[-1].kind is BatchKind.BYE for batches in found].count(True) == 1
