"""Cost of a stamp to a service while no broker answers, each call timed by itself, and the growth of its memory."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka
import numpy as np

from bench.contestant import Json, run
from bench.footprint import memory_bytes
from bench.speed import Progress
from bench.stamp_contestants import check_kept
from hopwatch import Probe
from hopwatch.probes.sinks.kafka import MAX_BYTES

CALLS: Final = 4_000_000
"""Twice as many as the queue has room for."""
BURST: Final = 2_000
REST_S: Final = 0.01
"""Between bursts a service does something else, and the probe's own thread gets to pack what waits."""
COUNTED_WITHIN_S: Final = 30.0
"""Time within which the last stamps are counted, on a machine that does something else as well."""
GOAL_US: Final = 20.0


@dataclass(frozen=True, slots=True)
class Outage:
    """A call to a probe whose brokers are gone; how far memory grew, and how many bytes may wait; what was dropped."""

    calls: int
    p50_us: float
    p99_us: float
    most_us: float
    goal_us: float
    grown_bytes: int
    queue_bytes: int
    dropped: int


def measure(scratch: Path, tell: Progress) -> list[Outage]:
    """Return what was measured; every stamp has to be counted as dropped.

    Raises:
        ContestantError: a stamp was neither delivered nor counted.
    """
    tell("a probe whose brokers are gone")
    told = run("bench.outage:stamp", scratch, calls=CALLS).result
    return [Outage(CALLS, goal_us=GOAL_US, queue_bytes=MAX_BYTES, **told)]


def stamp(folder: Path, calls: int) -> Json:
    """Stamp in bursts, for brokers that are not there."""
    del folder
    confluent_kafka.libversion()
    spans_ns = np.ones(calls, np.int64)
    event_us = time.time_ns() // 1_000
    before_bytes = memory_bytes("VmRSS")
    with socket.socket() as taken:
        # Bound, and nobody listens.
        taken.bind(("127.0.0.1", 0))
        probe = Probe("bench", "n0", f"kafka://127.0.0.1:{taken.getsockname()[1]}/t")
        for number in range(calls):
            if number % BURST == 0:
                time.sleep(REST_S)
            began_ns = time.perf_counter_ns()
            probe.arrived(number, event_us)
            spans_ns[number] = time.perf_counter_ns() - began_ns
        grown_bytes = memory_bytes("VmHWM") - before_bytes
        probe.close()
        # On a busy machine the sender is still dropping when its host waits no longer.
        until_s = time.monotonic() + COUNTED_WITHIN_S
        while probe.dropped < calls and time.monotonic() < until_s:
            time.sleep(REST_S)
    check_kept("A probe without brokers", calls, probe.dropped)
    p50_us, p99_us, most_us = (float(span) / 1e3 for span in np.quantile(spans_ns, (0.5, 0.99, 1.0)))
    return {
        "p50_us": p50_us, "p99_us": p99_us, "most_us": most_us, "grown_bytes": grown_bytes, "dropped": probe.dropped,
    }  # fmt: skip
