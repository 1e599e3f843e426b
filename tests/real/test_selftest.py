"""Tests of the self-test, and of an undeclared node, of a real monitor over a real broker."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from hopwatch import Probe
from hopwatch.monitor.selftest.summary import SelftestSummary
from hopwatch.monitor.store import dialect, schema, selftest
from servers.kafka import Kafka
from tests.real.monitor_process import Monitor
from tests.real.program_folder import Workplace

STREAMS: Final = '[streams.orders]\npath = ["a -> b"] # the path\n[selftest]'
"""All else by default."""
PATIENCE_S: Final = 400.0
PAUSE_S: Final = 15.0


class Traffic:
    """Messages through a, x and b, of which x is not declared; every other one passes x."""

    def __init__(self, sink: str) -> None:
        """Let it flow."""
        self.probes = {node: Probe("orders", node, sink, probe=node) for node in "axb"}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send what is left."""
        self._ended.set()
        self._thread.join()
        for probe in self.probes.values():
            probe.close()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(0.02):
            number += 1
            message_id, event_us = uuid4(), time.time_ns() // 1_000
            for node in "axb" if number % 2 else "ab":
                with self.probes[node].passing(message_id, event_us):
                    time.sleep(0.001)


def read(work: Workplace) -> SelftestSummary:
    """Return the outcomes so far; nothing before there is a store."""
    if not schema.has_store(work.store_url):
        return SelftestSummary(0, 0, 0, 0, 0, None, None, ())
    with schema.open_snapshot(dialect.create_engine(work.store_url)) as connection:
        return selftest.read_summary(connection, 0)


@pytest.mark.soak  # tests/monitor/selftest has all of it in time that is set by hand
def test_a_real_monitor_finds_what_it_injects(kafka: Kafka, tmp_path: Path) -> None:
    """Each minute is as injected, a kill and a restart included; a pause is found, and is an alert.

    Meanwhile a node that nobody declared is placed by its messages, and taken into the path.
    """
    kafka.create_topic("selftest", 4)
    work = Workplace(tmp_path / "selftest", kafka.url("selftest"), streams=STREAMS, monitor="")
    monitor, traffic = Monitor(work).start(), Traffic(kafka.url("selftest"))
    monitor.until(lambda: read(work).minutes >= 2, "two minutes", PATIENCE_S)
    told = json.loads(work.call("pathway", "discover", "--json").stdout)
    (node,) = told["nodes"]
    assert (node["node"], node["added"]) == ("x", ["a -> b | x", "x -> b"])
    assert work.call("pathway", "adopt", "x", "--stream", "orders").returncode == 0
    monitor.until(lambda: "is in force" in work.words(), "the new path")
    monitor.kill()
    monitor.start()
    monitor.until(lambda: read(work).minutes >= 5, "five minutes", PATIENCE_S)
    summary = read(work)
    assert (summary.failed, summary.found, summary.false) == (0, summary.lost, 0)
    assert summary.lost > 30
    assert monitor.process is not None
    os.killpg(monitor.process.pid, signal.SIGSTOP)
    time.sleep(PAUSE_S)
    os.killpg(monitor.process.pid, signal.SIGCONT)
    monitor.until(lambda: read(work).failed > 0, "the pause", PATIENCE_S)
    texts = [problem.text for minute in read(work).problems for problem in minute.problems]
    assert all(text.startswith("the monitor stood still for ") for text in texts), texts
    monitor.until(lambda: "selftest/page/*" in work.call("alerts", "list").stdout, "the alert")
    doctor = work.call("doctor", "--allow-weak")
    assert "FAIL self-test" in doctor.stdout
    traffic.end()
    monitor.stop()
