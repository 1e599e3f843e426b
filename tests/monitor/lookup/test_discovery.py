"""Tests of the sightings of a stream that are read from segments."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch.monitor.lookup import discovery
from hopwatch.monitor.lookup.discovery import SightingsReader
from hopwatch.probes.contract.segment import MAGIC
from tests.support.spool import START_US, at_us, frame_record, observation_batch, pack_lags


def test_the_first_stamp_of_a_message_at_a_node_counts() -> None:
    """The arrival where there is one, and the earliest of several; of other streams and times nothing is read."""
    reader = SightingsReader("orders", START_US, at_us(60))
    again = observation_batch([1], seq=1, lag_in_us=pack_lags(9_000))
    left = observation_batch([1, 2], "b", lag_in_us=b"")
    other = observation_batch([5], stream="pings")
    later = observation_batch([6], window_start_ms=at_us(60) // 1_000)
    records = (observation_batch([1]), again, left, other, later)
    reader.add_segment(MAGIC + b"".join(frame_record(one) for one in records))
    found = reader.read("a")
    assert set(found) == {"a", "b"}
    assert found["a"].moments_us.tolist() == [START_US + 1_000]
    assert found["b"].moments_us.tolist() == [START_US + 2_000] * 2
    assert (found["a"].has_in, found["a"].has_out) == (True, True)
    assert (found["b"].has_in, found["b"].has_out) == (False, True)


def test_of_very_many_messages_the_same_part_is_kept_at_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The part goes by the ids, so that what one node saw can be found at another."""
    monkeypatch.setattr(discovery, "MAX_MESSAGES", 100)
    reader = SightingsReader("orders", START_US, at_us(60))
    for node in "ab":
        for first in range(0, 1_000, 50):
            reader.add_segment(MAGIC + frame_record(observation_batch(range(first, first + 50), node)))
    found = reader.read("a")
    assert 20 < len(found["a"].ids) <= 100
    assert np.array_equal(found["a"].ids, found["b"].ids)
