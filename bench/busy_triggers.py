"""Cost of a trigger with four live windows a stream: with data for each window, with the pulse alone, and idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bench.contestant import Json
from bench.generate import GeneratedWork
from bench.ours import place, start_job
from bench.progress import Trigger, idle_s, triggers, wait_until
from bench.spool import SpoolInstance, write_record
from bench.truth import WrongResultError
from bench.work import FIRST_START_MS, NODES, Work, start_ms, stream_name
from hopwatch.monitor import pulse
from hopwatch.monitor.spark import job
from hopwatch.monitor.spark.window_state import MAX_TALLY_WAIT_US
from hopwatch.monitor.store import fencing, reader
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.limits import MONITOR_STREAM, WINDOW_US

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STREAMS: Final = 100
WINDOWS: Final = 4
MESSAGES: Final = 32
"""How many messages a round brings to each window, each of them stamped at all four nodes."""
WARMING: Final = 3
ROUNDS: Final = 8
IDLE: Final = 5

_TRIGGER: Final = "500 milliseconds"
_FIRST_US: Final = start_ms(WINDOWS - 1) * 1_000 + 5_000_000
_EVERY_US: Final = 1_000_000


class TriggerRounds:
    """Writes what all probes send in one round, and lets the whole of it appear at once."""

    def __init__(self, spool: Path, staging: Path, streams: int) -> None:
        """Make the probe instances; what they send in a round arrives at once, however many they are."""
        self.spool, self.staging = spool, staging
        self.done, self.pulses, self.skipped_us = 0, 0, 0
        self.brought: Counter[int] = Counter()
        epoch_us = FIRST_START_MS * 1_000 - 1
        self.instances = [
            SpoolInstance(staging, stream_name(stream), node, epoch_us, set(), WINDOW_US)
            for stream in range(streams)
            for node in NODES
        ]
        self.pulse = SpoolInstance(staging, MONITOR_STREAM, pulse.NODE, epoch_us, set(), WINDOW_US)

    def next(self, windows: range) -> None:
        """Send some messages of these windows of every stream through all nodes."""
        folder = self.staging / f"round-{self.done}"
        for number, instance in enumerate(self.instances):
            instance.folder, instance.segments = folder, number
            for window in windows:
                self._send(instance, window, number // len(NODES))
            instance.close()
        folder.rename(self.spool / folder.name)
        self.done += 1
        self.brought.update(windows)

    def beat(self, later_us: int = 0) -> None:
        """Send the pulse alone, so much later than the next would be."""
        self.skipped_us += later_us
        folder = self.staging / f"pulse-{self.pulses}"
        self.pulse.folder = folder
        write_record(self.pulse, BatchKind.HEARTBEAT, self._now_us() + self.pulses * _EVERY_US + self.skipped_us)
        folder.rename(self.spool / folder.name)
        self.pulses += 1

    def _now_us(self) -> int:
        return _FIRST_US + self.done * _EVERY_US

    def _send(self, instance: SpoolInstance, window: int, stream: int) -> None:
        # The same messages at every node: their ids depend on round, window and stream alone.
        chance, now_us, start_us = (
            np.random.default_rng([self.done, window, stream]),
            self._now_us(),
            start_ms(window) * 1_000,
        )
        ids = chance.integers(0, 2**64, (MESSAGES, 2), np.uint64)
        offset_us = np.sort(chance.integers(0, min(WINDOW_US, now_us - start_us), MESSAGES))
        lag_us = now_us - start_us - offset_us
        instance.send(
            now_us,
            start_ms(window),
            kind=BatchKind.OBSERVATIONS,
            complete_through_us=now_us,
            count=MESSAGES,
            message_ids=ids.tobytes(),
            event_offset_us=offset_us.astype("<u4").tobytes(),
            lag_in_us=lag_us.astype("<i8").tobytes(),
            lag_out_us=lag_us.astype("<i8").tobytes(),
        )


def live(folder: Path, streams: int = STREAMS) -> Json:
    """Return how long triggers took, in s: ``busy`` and ``pulse`` with the batch behind each, and ``idle``."""
    spool, staging = folder / "spool", folder / "staging"
    for made in (spool, staging):
        made.mkdir()
    rounds = TriggerRounds(spool, staging, streams)
    with start_job(folder) as spark:
        spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "1000")
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")
        where = place(GeneratedWork(Work(streams * WINDOWS * 1_000, streams, minutes=WINDOWS), folder), folder / "run")
        fencing.claim_store(where.engine, where.checkpoint, where.rules)
        query = job.start_stream(spark, where, _TRIGGER, lambda _: None)
        for _ in range(WARMING + ROUNDS):
            _run(query, partial(rounds.next, range(WINDOWS)), len(rounds.instances))
        busy = pairs(triggers(query.recentProgress))[WARMING:]
        for _ in range(ROUNDS):
            _run(query, partial(rounds.next, range(WINDOWS - 1, WINDOWS)), len(rounds.instances))
        newest = pairs(triggers(query.recentProgress))[-ROUNDS:]
        for _ in range(ROUNDS):
            _run(query, rounds.beat, 1)
        beats = pairs(triggers(query.recentProgress))[-ROUNDS:]
        wait_until(query, lambda _: len(idle_s(query.recentProgress)) >= IDLE)
        idle = idle_s(query.recentProgress)[-IDLE:]
        _run(query, partial(rounds.beat, MAX_TALLY_WAIT_US), 1)
        query.stop()
        _check(where, streams, [rounds.brought[window] * MESSAGES for window in range(WINDOWS)])
    return {"busy_s": busy, "newest_s": newest, "pulse_s": beats, "idle_s": idle}


def pairs(found: list[Trigger]) -> list[tuple[float, float]]:
    """Return how long each trigger with data took, and the batch without data that the new watermark asks for."""
    return [
        (one.took_s, behind.took_s if not behind.segments else 0.0) for one, behind in pairwise(found) if one.segments
    ]


def _run(query: StreamingQuery, send: Callable[[], None], segments: int) -> None:
    """Send segments, and wait until they are read and the batch behind that has run."""
    before = len(triggers(query.recentProgress))
    send()

    def is_through(found: list[Trigger]) -> bool:
        since = found[before:]
        return sum(one.segments for one in since) == segments and not since[-1].segments

    wait_until(query, is_through)


def _check(where: job.JobContext, streams: int, brought: list[int]) -> None:
    told = reader.read_report(where.engine)["streams"]
    found = {stream["stream"]: [window["known"] for window in stream["windows"]] for stream in told}
    for stream in map(stream_name, range(streams)):
        if found.get(stream) != brought:
            raise WrongResultError(f"the windows of {stream} have {brought} messages, got {found.get(stream, 'none')}")
