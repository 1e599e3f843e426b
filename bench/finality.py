"""Delay until a window is final, with real probes, the real clock, the monitor's pulse and its default trigger.

Measured from the moment at which end, transit and settle of a window have passed to that at which the store says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from bench.contestant import Json
from bench.ours import start_job
from bench.progress import raise_failure
from bench.truth import WrongResultError
from bench.work import NODES, pathway
from hopwatch import Probe
from hopwatch.monitor import pulse
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings.model import MonitorSettings
from hopwatch.monitor.spark import job
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, fencing, reader, schema
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.kafka import KafkaAccess
from hopwatch.probes.contract.limits import WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from hopwatch.monitor.results import WindowResult

STREAM: Final = "live"
TERMS: Final = WindowPolicy(20_000_000, 15_000_000, 3_600_000_000, 86_400_000_000)
"""Shorter than the defaults, so that nobody waits; what is measured comes on top of them."""
HOG: Final = "hog"
MESSAGES: Final = 200
HOG_RATIO: Final = 99
"""The hog's node makes so many observations for each of all other nodes together."""
EVERY_S: Final = 0.1
HOGGED_EVERY_S: Final = 2.0
LOST_EVERY: Final = 100
WINDOWS: Final = 2
LOOK_S: Final = 0.1

_CLEAR_OF_THE_END_S: Final = 5.0


def measure_finality(folder: Path, *, has_hog: bool = False) -> Json:
    """Return ``late_s``: how long after its time each window was final in the store; each is checked.

    With a hog, one node of another stream has 99 % of all observations.
    """
    spool = folder / "spool"
    spool.mkdir()
    settings = MonitorSettings.model_validate({"workdir": str(folder / "run")})
    engine = dialect.create_engine(f"sqlite:///{folder / 'store.db'}")
    schema.prepare_store(engine)
    rules = {STREAM: StreamConfig(pathway(), TERMS), HOG: StreamConfig(Pathway.parse(HOG), TERMS)}
    where = job.JobContext(SpoolSource(spool), engine, rules, settings.workdir)
    fencing.claim_store(engine, where.checkpoint, where.rules)
    with start_job(folder) as spark, _traffic(spool, has_hog=has_hog) as sent:
        beat = pulse.start_pulse(f"spool:{spool}", KafkaAccess(), settings.pulse_us / 1e6)
        query = job.start_stream(spark, where, f"{settings.trigger_us // 1_000} milliseconds", lambda _: None)
        # The first window is what is left of this minute, unless that is next to nothing.
        first_us = int(time.time() + _CLEAR_OF_THE_END_S) * 1_000_000 // WINDOW_US * WINDOW_US
        late_s = [_final(query, where, sent, first_us + number * WINDOW_US) for number in range(WINDOWS)]
        query.stop()
        beat.close()
    return {"late_s": late_s, "trigger_s": settings.trigger_us / 1e6, "pulse_s": settings.pulse_us / 1e6}


def _final(query: StreamingQuery, where: job.JobContext, sent: dict[int, int], start_us: int) -> float:
    """Wait until a window is final in the store; return how long after its time that was, s."""
    while True:
        raise_failure(query)
        with where.engine.connect() as connection:
            result = reader.read_window(connection, STREAM, start_us)
        if result is not None and result.status.is_final:
            now_s = time.time()
            _check(result, sent.get(start_us, 0))
            return now_s - TERMS.final_at_us(start_us) / 1e6
        time.sleep(LOOK_S)


def _check(result: WindowResult, sent: int) -> None:
    lost = sent // LOST_EVERY
    bounds = result.lost_lower, result.lost_upper
    if (result.known, result.lost, bounds) != (sent, lost, (lost, lost)):
        what = f"{result.known:,} known, {result.lost:,} lost, bounds {bounds}, {result.verdict}"
        raise WrongResultError(f"a live window has {sent:,} messages, {lost:,} of them lost, got {what}")


@contextmanager
def _traffic(spool: Path, *, has_hog: bool) -> Iterator[dict[int, int]]:
    """Send messages through a probe at every node; yields how many were sent, by the start of their window."""
    sent: dict[int, int] = {}
    stop = threading.Event()
    probes = [Probe(STREAM, node, f"spool:{spool}", strict=True) for node in NODES]
    hog = Probe(HOG, HOG, f"spool:{spool}", strict=True)

    def send() -> None:
        while not stop.wait(HOGGED_EVERY_S if has_hog else EVERY_S):
            now_us = time.time_ns() // 1_000
            ids, events_us = _ids(MESSAGES), np.full(MESSAGES, now_us)
            window_us = now_us // WINDOW_US * WINDOW_US
            sent[window_us] = sent.get(window_us, 0) + MESSAGES
            for place, probe in enumerate(probes):
                # The last node never sees one of so many.
                came = slice(None) if place < len(probes) - 1 else slice(MESSAGES // LOST_EVERY, None)
                probe.arrived_many(ids[came], events_us[came])
                probe.departed_many(ids[came], events_us[came])
            if has_hog:
                hogged = _ids(MESSAGES * len(probes) * HOG_RATIO)
                hog.arrived_many(hogged, np.full(len(hogged), now_us))
                hog.departed_many(hogged, np.full(len(hogged), now_us))

    sender = threading.Thread(target=send, name="bench-traffic")
    sender.start()
    try:
        yield sent
    finally:
        stop.set()
        sender.join()
        for probe in (*probes, hog):
            probe.close()


def _ids(count: int) -> NDArray[np.void]:
    return np.frombuffer(os.urandom(16 * count), "V16")
