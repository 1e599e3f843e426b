"""Tests of probes in processes of their own: the end, a fork, a kill, many threads."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.ids import id_bytes
from tests.support.probe_host import LAST_S, ROOT, numbers, rows, run, spooled, started


@pytest.mark.parametrize(
    "end", ["", "sys.exit(0)", "del probe", "threading.Thread(target=lambda: probe.departed(1, NOW_US)).start()"]
)
def test_a_host_that_ends_without_closing_has_sent_all(tmp_path: Path, end: str) -> None:
    """The last stamps and the bye are sent as the process ends, though its probe was forgotten."""
    run(tmp_path, f"probe.arrived(1, NOW_US)\n{end}")
    (batches,) = spooled(tmp_path).values()
    assert set(numbers(batches)) == {1}
    assert batches[-1].kind is BatchKind.BYE
    assert [batch.seq for batch in batches] == list(range(len(batches)))


def test_a_host_that_ends_waits_for_the_slowest_of_its_probes_alone(tmp_path: Path) -> None:
    """All probes of a host that ends close at once, each with its full patience."""
    host = """
import threading
from hopwatch import Probe
from hopwatch.testing import MemorySink
together = threading.Barrier(3)
class Waiting(MemorySink):
    def close(self, patience_s=0.0):
        together.wait(patience_s)
        print(f"closed {patience_s > 1}\\n", end="")
probes = [Probe("orders", f"n{number}", Waiting()) for number in range(3)]
"""
    assert run(tmp_path, "", host=host).stdout.splitlines() == ["closed True"] * 3


def test_the_child_of_a_fork_is_an_instance_of_its_own(tmp_path: Path) -> None:
    """A parent's stamps are sent once, by the parent; parent and child have folders, epochs and byes of their own."""
    run(
        tmp_path,
        """
probe.arrived(1, NOW_US)
pid = os.fork()
probe.arrived(2 if pid else 3, NOW_US)
if pid:
    assert os.waitpid(pid, 0)[1] == 0
""",
    )
    instances = spooled(tmp_path).values()
    assert sorted(map(numbers, instances)) == [[1, 2], [3]]
    assert [batches[-1].kind for batches in instances] == [BatchKind.BYE] * 2
    assert len({(batches[0].probe, batches[0].epoch_us) for batches in instances}) == 2


def test_a_child_is_nobodys_double_even_at_the_same_moment(tmp_path: Path) -> None:
    """On a clock that stands, with a name that was given, children differ from their parent and from each other."""
    host = """
import os, sys
from hopwatch import Probe
from hopwatch.testing import EPOCH_US, ManualClock
probe = Probe("orders", "router", "spool:" + sys.argv[1], probe="worker", labels={"host": "a"}, clock=ManualClock())
"""
    script = """
children = []
for number in (1, 2):
    pid = os.fork()
    if not pid:
        probe.arrived(number, EPOCH_US)
        sys.exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0]
probe.arrived(3, EPOCH_US)
"""
    run(tmp_path, script, host=host)
    instances = spooled(tmp_path)
    assert sorted(map(numbers, instances.values())) == [[1], [2], [3]]
    assert [name.startswith("orders.router.worker") for name in instances] == [True] * 3
    assert [batch.labels for batches in instances.values() for batch in batches] == [{"host": "a"}] * 9


def test_a_fork_leaves_a_sink_object_to_the_parent(tmp_path: Path) -> None:
    """Two processes must not write to one sink: the child does nothing, and its log says what to do."""
    done = run(
        tmp_path,
        """
from pathlib import Path
from hopwatch.probes.sinks.spool import SpoolSink
given = Probe("orders", "given", SpoolSink(Path(sys.argv[1]), "given"))
pid = os.fork()
given.arrived(2 if pid else 3, NOW_US)
given.flush()
if pid:
    os.waitpid(pid, 0)
""",
    )
    assert numbers(spooled(tmp_path)["given"]) == [2]
    assert "a sink given as an object stays with the parent, got SpoolSink: give a URL" in done.stderr


WORKER = """
import multiprocessing, sys, time

def opened():
    from hopwatch import Probe
    return Probe("orders", "router", "spool:" + sys.argv[1])

def work(probe):
    (probe or opened()).arrived(1, time.time_ns() // 1_000)

if __name__ == "__main__":
    probe = opened() if sys.argv[3] == "carried" else None
    worker = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(probe,))
    worker.start()
    worker.join()
    sys.exit(worker.exitcode)
"""


@pytest.mark.parametrize(
    ("method", "probe"), [("fork", "carried"), ("fork", "own"), ("spawn", "own"), ("forkserver", "own")]
)
def test_a_worker_of_multiprocessing_sends_all(tmp_path: Path, method: str, probe: str) -> None:
    """Such a worker ends without what other processes do at their end; what it stamped is sent all the same."""
    script, spool = tmp_path / "worker.py", tmp_path / "spool"
    script.write_text(WORKER)
    command = [sys.executable, str(script), str(spool), method, probe]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=LAST_S, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    (worker,) = (batches for batches in spooled(spool).values() if rows(batches))
    assert numbers(worker) == [1]
    assert worker[-1].kind is BatchKind.BYE


def test_a_host_that_is_killed_loses_the_end_only(tmp_path: Path) -> None:
    """After a kill the published segments are whole and in order; only the end is lost."""
    script = """
from pathlib import Path
number = 0
while True:
    probe.arrived(number, NOW_US)
    number += 1
    if number % 1000 == 0:
        probe.flush()
        if list(Path(sys.argv[1]).rglob("*.seg")):
            print(number, flush=True)
"""
    with started(tmp_path, script) as host:
        assert host.stdout is not None
        for _ in range(3):
            assert int(host.stdout.readline())
        host.kill()
        assert host.wait(LAST_S) == -signal.SIGKILL
    (batches,) = spooled(tmp_path).values()
    assert [batch.seq for batch in batches] == list(range(len(batches)))
    assert numbers(batches) == list(range(len(numbers(batches))))
    assert len(numbers(batches)) >= 1_000
    assert BatchKind.BYE not in {batch.kind for batch in batches}


def test_many_threads_may_stamp_at_once(tmp_path: Path) -> None:
    """Eight threads, singly, in blocks and in arrays, with flushes between: each message is said once at each end."""
    script = """
def work(first):
    for number in range(first, first + 2_000):
        if number % 3:
            with probe.passing(number, NOW_US):
                pass
        else:
            probe.arrived_many([number], [NOW_US])
            probe.departed_many([number], [NOW_US])
        if number % 500 == 0:
            probe.flush()
threads = [threading.Thread(target=work, args=(first,)) for first in range(0, 16_000, 2_000)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert probe.dropped == 0
"""
    run(tmp_path, script)
    (batches,) = spooled(tmp_path).values()
    arrivals = Counter(row.message_id for row in rows(batches) if row.in_us is not None)
    departures = Counter(row.message_id for row in rows(batches) if row.out_us is not None)
    assert arrivals == departures == Counter(map(id_bytes, range(16_000)))
    assert [batch.seq for batch in batches] == list(range(len(batches)))
    moments = [batch.complete_through_us for batch in batches]
    assert moments == sorted(moments)
