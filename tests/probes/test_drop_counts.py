"""Tests of unreported drops: all are counted, in bounded memory."""

from __future__ import annotations

import pytest

from hopwatch.probes import drop_counts
from hopwatch.probes.contract.batch import Drop
from hopwatch.probes.contract.limits import MAX_DROPS
from hopwatch.probes.drop_counts import NO_ROOM, DropCounts


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> DropCounts:
    """Return a room for two windows and causes."""
    monkeypatch.setattr(drop_counts, "MAX_COUNTED", 2)
    return DropCounts()


def test_drops_are_counted_by_window_and_cause() -> None:
    """Those of one window and cause are one number, told in the order of both."""
    drops = DropCounts()
    assert drops.add({(60_000, "full"): 1, (0, "full"): 2}, 0)
    assert drops.add({(0, "bad"): 3, (0, "full"): 4}, 0)
    assert drops.next_drops() == (Drop(0, 3, "bad"), Drop(0, 6, "full"), Drop(60_000, 1, "full"))
    assert len(drops) == 3


def test_what_was_told_is_gone() -> None:
    """Drops that were told are removed; those counted meanwhile stay."""
    drops = DropCounts()
    drops.add({(0, "full"): 2, (60_000, "full"): 1}, 0)
    told = drops.next_drops()
    drops.add({(0, "full"): 5}, 0)
    drops.remove(told)
    assert drops.next_drops() == (Drop(0, 5, "full"),)


def test_a_record_tells_so_many_at_most() -> None:
    """As many as the wire lets it carry; the next one tells the next, until none is left."""
    drops = DropCounts()
    drops.add({(minute * 60_000, "full"): 1 for minute in range(2 * MAX_DROPS + 1)}, 0)
    told = []
    while drops:
        told.append(drops.next_drops())
        drops.remove(told[-1])
    assert [len(part) for part in told] == [MAX_DROPS, MAX_DROPS, 1]
    assert len({drop.window_start_ms for part in told for drop in part}) == 2 * MAX_DROPS + 1


def test_what_finds_no_room_is_counted_in_one_place(small: DropCounts) -> None:
    """Under one window and a cause that says so, however much it is; what has a place already is counted there."""
    assert small.add({(0, "full"): 1, (60_000, "full"): 1}, 180_000)
    assert not small.add({(minute * 60_000, "full"): 1 for minute in range(1_000)}, 180_000)
    assert small.next_drops() == (Drop(0, 2, "full"), Drop(60_000, 2, "full"), Drop(180_000, 998, NO_ROOM))


def test_room_comes_back(small: DropCounts) -> None:
    """Once they are told, as many other windows are counted exactly."""
    small.add({(minute, "full"): 1 for minute in range(9)}, 0)
    small.remove(small.next_drops())
    assert small.add({(7, "full"): 1, (8, "full"): 1}, 0)
    assert small.next_drops() == (Drop(7, 1, "full"), Drop(8, 1, "full"))
