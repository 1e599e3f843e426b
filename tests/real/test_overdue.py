"""Tests of what is overdue under load: how soon it is told, and that nothing is called overdue that was not lost."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from sqlalchemy import Engine, func, select

from hopwatch import Probe
from hopwatch.monitor.store import dialect, tables
from servers.kafka import Kafka
from tests.real.monitor_process import Monitor
from tests.real.program_folder import Workplace

TICK_S: Final = 0.1
A_TICK: Final = 100
DEADLINE_S, SETTLE_S, WITHIN_S = 5, 30, 15
BURSTS: Final = 40
STREAMS: Final = f'[streams.orders]\npath = "a -> b"\ndeadline = "{DEADLINE_S}s"'
"""All else by default: a trigger of 5 s, a pulse of 3 s, a settle of 30 s."""


class Bursts:
    """A thousand messages a second through two nodes; now and then all of a tenth of a second are lost between."""

    def __init__(self, sink: str) -> None:
        """Let it flow."""
        self.probes = [Probe("orders", node, sink, probe=node) for node in "ab"]
        self.lost_s: list[float] = []
        """When each burst was lost, by the wall clock."""
        self.is_next_lost = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def lose(self) -> None:
        """Lose the messages of the next tick."""
        self.is_next_lost.set()

    def end(self) -> None:
        """Send what is left."""
        self._ended.set()
        self._thread.join()
        for probe in self.probes:
            probe.close()

    def _run(self) -> None:
        chance = np.random.default_rng(3)
        while not self._ended.wait(TICK_S):
            ids = chance.integers(0, 2**64, (A_TICK, 2), np.uint64).view(np.uint8).reshape(-1, 16)
            moments_us = np.full(A_TICK, time.time_ns() // 1_000)
            self.probes[0].arrived_many(ids, moments_us)
            self.probes[0].departed_many(ids, moments_us)
            if self.is_next_lost.is_set():
                self.is_next_lost.clear()
                self.lost_s.append(time.time())
            else:
                self.probes[1].arrived_many(ids, moments_us)
                self.probes[1].departed_many(ids, moments_us)


def count_told(store: Engine) -> int:
    """Return how many messages the store calls overdue or surely lost at b."""
    node = tables.node_windows.c
    with store.begin() as connection:
        found = connection.execute(select(func.sum(node.overdue + node.loss_lower)).where(node.node == "b")).scalar()
    return int(found or 0)


@pytest.mark.soak  # tests/e2e/test_overdue.py has a real monitor by default
def test_what_is_lost_is_told_within_seconds_of_its_deadline(kafka: Kafka, tmp_path: Path) -> None:
    """Each burst is overdue within 15 s of the moment at which deadline and settle have passed, and nothing else is."""
    kafka.create_topic("overdue", 4)
    work = Workplace(tmp_path / "overdue", kafka.url("overdue"), streams=STREAMS, monitor="")
    monitor = Monitor(work).start()
    monitor.until(lambda: "hopwatch: watching" in work.words(), "the start")
    store, traffic, dice = dialect.create_engine(work.store_url), Bursts(kafka.url("overdue")), random.Random(5)
    latencies_s: list[float] = []
    next_s, ends_s = time.time() + 20, time.time() + 20 + 12 * BURSTS + 120
    while len(latencies_s) < BURSTS:
        assert time.time() < ends_s, (latencies_s, traffic.lost_s)
        if time.time() >= next_s and len(traffic.lost_s) < BURSTS:
            traffic.lose()
            next_s += dice.uniform(8, 16)
        told = count_told(store)
        now_s = time.time()
        assert told <= A_TICK * len(traffic.lost_s)
        while told >= A_TICK * (len(latencies_s) + 1):
            latencies_s.append(now_s - traffic.lost_s[len(latencies_s)] - DEADLINE_S - SETTLE_S)
        time.sleep(0.2)
    traffic.end()
    monitor.stop()
    ordered = sorted(latencies_s)
    print(f"after deadline and settle, s: {[round(one, 1) for one in ordered]}")  # noqa: T201 - for docs/PERFORMANCE.md
    assert ordered[-1] <= WITHIN_S
