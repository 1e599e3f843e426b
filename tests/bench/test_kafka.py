"""Tests of the bench through Kafka: the same work in other minutes, and what the triggers share."""

from __future__ import annotations

from bench import kafka
from bench.generate import GeneratedWork
from bench.progress import Trigger
from hopwatch.probes.contract import segment
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.limits import WINDOW_MS


def test_moved_work_is_the_same_in_other_minutes(little: GeneratedWork) -> None:
    """Window, epoch, time of sending and completeness move; ids, lags and numbers stay."""
    paths = sorted(little.spool.rglob("*.seg"), key=lambda path: path.stat().st_mtime_ns)
    kept = [
        decode(path.read_bytes()[frame.start : frame.end])
        for path in paths
        for frame in segment.read_frames(path.read_bytes())
    ]
    moved = [decode(record) for _, record in kafka._moved(little, 7 * WINDOW_MS)]
    assert len(moved) == len(kept) > 0
    for before, after in zip(kept, moved, strict=True):
        moments = [
            after.window_start_ms - before.window_start_ms,
            (after.epoch_us - before.epoch_us) // 1_000,
            (after.sent_at_us - before.sent_at_us) // 1_000,
            (after.complete_through_us - before.complete_through_us) // 1_000,
        ]
        assert moments == [7 * WINDOW_MS] * 4
        assert (after.seq, after.message_ids, after.lag_in_us) == (before.seq, before.message_ids, before.lag_in_us)


def test_triggers_share_the_work_by_their_records() -> None:
    """Of four records in all, three are three quarters."""
    first, second = Trigger(0, 1.0, 1.0, 1), Trigger(1, 2.0, 1.0, 3)
    assert kafka._share([second], [first, second]) == 0.75
