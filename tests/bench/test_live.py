"""Tests of what live measures hold against what was sent, and of what they tell."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from bench import busy_triggers, finality
from bench.busy_triggers import TriggerRounds
from bench.live import _late, _triggers
from bench.progress import Trigger
from bench.truth import WrongResultError
from bench.work import Work, rules
from hopwatch.monitor.spark.job import JobContext
from hopwatch.monitor.spark.sources.record_source import SpoolSource
from hopwatch.monitor.store import dialect, schema
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.segment import read_frames
from tests.support.micro_batches import MicroBatches

STREAMS: Final = 10


@pytest.fixture
def place(tmp_path: Path) -> JobContext:
    """Return a place with an empty store and spool."""
    engine = dialect.create_engine(f"sqlite:///{tmp_path}/store.db")
    schema.prepare_store(engine)
    (tmp_path / "spool").mkdir()
    work = Work(STREAMS * busy_triggers.WINDOWS * 1_000, STREAMS, minutes=busy_triggers.WINDOWS)
    return JobContext(SpoolSource(tmp_path / "spool"), engine, rules(work), tmp_path)


def test_a_round_brings_the_same_messages_to_every_node_of_its_windows(place: JobContext) -> None:
    """After a round for all of 40 windows and one for the newest, these have 64 messages; less is refused."""
    rounds = TriggerRounds(place.workdir / "spool", place.workdir / "staging", STREAMS)
    stream = MicroBatches(place.rules, place.engine)
    for windows in (range(4), range(3, 4)):
        rounds.next(windows)
        stream.run(sorted((place.workdir / "spool").glob(f"round-{rounds.done - 1}/*.seg")))
    busy_triggers._check(place, STREAMS, [32, 32, 32, 64])
    told = r"^the windows of s0 have \[32, 32, 32, 96\] messages, got \[32, 32, 32, 64\]$"
    with pytest.raises(WrongResultError, match=told):
        busy_triggers._check(place, STREAMS, [32, 32, 32, 96])


def test_an_empty_store_is_refused(place: JobContext) -> None:
    """Windows that are not there are told by their number."""
    with pytest.raises(WrongResultError, match=r"^the windows of s0 have \[32\] messages, got none$"):
        busy_triggers._check(place, STREAMS, [32])


def test_a_beat_is_the_pulse_alone(place: JobContext) -> None:
    """One segment with one heartbeat."""
    rounds = TriggerRounds(place.workdir / "spool", place.workdir / "staging", STREAMS)
    rounds.beat()
    (path,) = (place.workdir / "spool").rglob("*.seg")
    data = path.read_bytes()
    (batch,) = [decode(data[frame.start : frame.end]) for frame in read_frames(data)]
    assert (batch.kind, batch.count) == (BatchKind.HEARTBEAT, 0)


def test_a_trigger_is_told_with_the_batch_behind_it() -> None:
    """Only a batch without data counts as the one behind."""
    found = [Trigger(0, 1, 0.5, 400), Trigger(1, 2, 0.2, 0), Trigger(2, 3, 0.6, 400), Trigger(3, 4, 0.7, 1)]
    assert busy_triggers.pairs(found) == [(0.5, 0.2), (0.6, 0.0)]


def test_live_windows_are_told_with_their_goals() -> None:
    """Triggers with data, the batch behind, and idle ones, each on a line of its own."""
    told = {"busy_s": [(1.0, 0.5), (2.0, 0.7)], "newest_s": [(0.8, 0.6)], "pulse_s": [(0.4, 0.3)], "idle_s": [0.1]}
    spans = _triggers(told, 400)
    assert [(span.took_s, span.goal_s) for span in spans] == [
        ((1.0, 2.0), 1.5),
        ((0.5, 0.7), None),
        ((0.8,), 1.5),
        ((0.6,), None),
        ((0.4,), 1.5),
        ((0.3,), None),
        ((0.1,), 0.5),
    ]
    late = _late({"late_s": [9.0, 8.0], "trigger_s": 5.0, "pulse_s": 3.0})
    assert (late.took_s, late.goal_s) == ((9.0, 8.0), 15.0)
    assert late.what.endswith("a trigger every 5 s, a pulse every 3 s")


@pytest.mark.parametrize(("known", "lost", "upper"), [(199, 2, 2), (200, 1, 1), (200, 2, 3)])
def test_a_live_window_that_is_not_exact_is_refused(known: int, lost: int, upper: int) -> None:
    """Messages, loss and both bounds are held against what was sent."""
    result: Any = SimpleNamespace(known=known, lost=lost, lost_lower=lost, lost_upper=upper, verdict="LOSSY")
    said = (
        rf"^a live window has 200 messages, 2 of them lost, got {known} known, {lost} lost, bounds \({lost}, {upper}\)"
    )
    with pytest.raises(WrongResultError, match=said):
        finality._check(result, 200)
