"""Tests of the bench without brokers: each call is timed, and each stamp is counted as dropped."""

from __future__ import annotations

from pathlib import Path

from bench import outage


def test_each_call_is_timed_and_each_stamp_counted(tmp_path: Path) -> None:
    """The contestant itself checks that nothing went uncounted."""
    told = outage.stamp(tmp_path, calls=5_000)
    assert told["dropped"] == 5_000
    assert 0 < told["p50_us"] <= told["p99_us"] <= told["most_us"]
