"""Batches that are delivered late, by up to ten minutes: in the end every count is what it would have been in time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hopwatch.probes.contract import segment
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import decode
from tests.support.job import Job, running, undisturbed
from tests.support.report import reported
from tests.support.spool_traffic import MINUTE_US, NODES, START_US, Segment, pulse, traffic

LATE = 0.1
MINUTES = 8
OF_ITS_HISTORY = ("status", "revision", "recovered")
"""What tells a window that was amended from one that never had to be."""


@pytest.mark.soak  # laws amend windows by default
def test_ten_per_cent_that_come_late_amend_their_windows(tmp_path: Path) -> None:
    """Judged without them, no more counts as surely lost than was; then all counts are exact, and recovered = late."""
    segments = traffic(seed=5, minutes=MINUTES)
    expected = undisturbed(tmp_path / "in-time", segments)
    chance = random.Random(3)
    late = [one for one in segments if _batch(one).kind is BatchKind.OBSERVATIONS and chance.random() < LATE]
    with running(tmp_path / "late") as job:
        for one in segments:
            if one not in late:
                one.write(job.spool)
        job.start()
        job.await_(job.is_final, "the judgement of what came in time")
        early = job.report()
        for one in late:
            delay_us = int(chance.uniform(3, 10) * MINUTE_US)
            replace(one, arrival_us=one.arrival_us + delay_us).write(job.spool)
        pulse(START_US + (MINUTES + 15) * MINUTE_US, "another").write(job.spool)
        job.await_(lambda: _has_all(job, expected["accounts"]["observations"]), "the amendment of the windows")
        assert job.stop() == 0
        got = job.report()
    hit = {(batch.stream, _minute(batch)) for batch in map(_batch, late)}
    for (key, before), (_, after) in zip(_windows(early), _windows(expected), strict=True):
        assert before["lost_lower"] <= after["lost"], key
        assert before["lost_upper"] is None or after["lost"] <= before["lost_upper"], key
    assert [_timeless(window) for _, window in _windows(got)] == [_timeless(window) for _, window in _windows(expected)]
    assert {key for key, window in _windows(got) if window["status"] == "AMENDED"} == hit
    # A message is lost, for the time being, when its last node has not told of it.
    missing = sum(batch.count for batch in map(_batch, late) if batch.node == NODES[-1])
    assert sum(window["recovered"] for _, window in _windows(got)) == missing > 0


def _batch(one: Segment) -> Batch:
    (frame,) = segment.read_frames(one.content)
    return decode(one.content[frame.start : frame.end])


def _minute(batch: Batch) -> str:
    return datetime.fromtimestamp(batch.window_start_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:00Z")


def _windows(report: dict[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield the windows that have messages, with stream and minute."""
    for told in report["streams"]:
        for window in told["windows"][:MINUTES]:
            yield (told["stream"], window["window_start"]), window


def _timeless(window: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in window.items() if name not in OF_ITS_HISTORY}


def _has_all(job: Job, observations: int) -> bool:
    """Return whether all that was sent is in the store, and no window has messages in flight."""
    report = reported(job.store_url)
    is_judged = not any(window["in_flight"] for _, window in _windows(report))
    return is_judged and report["accounts"]["observations"] == observations
