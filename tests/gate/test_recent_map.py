"""Laws of the map of recent entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate.recent_map import RecentMap

KEYS = st.integers(0, 20)


@given(st.lists(KEYS), st.integers(1, 8))
def test_the_last_ones_are_kept_and_never_twice_as_many(keys: list[int], least: int) -> None:
    """Of what was put in, at least so many of the last, with the value that came last."""
    recent: RecentMap[int, int] = RecentMap(least)
    for at, key in enumerate(keys):
        recent.put(key, at)
        assert len(recent) <= 2 * least
        assert recent.get(key) == at
    for at, key in enumerate(keys):
        if at >= len(keys) - least:
            assert recent.get(key) == max(number for number, one in enumerate(keys) if one == key)


@given(st.lists(KEYS), KEYS)
def test_what_is_forgotten_is_not_there(keys: list[int], key: int) -> None:
    """In neither generation."""
    recent: RecentMap[int, int] = RecentMap(3)
    for one in keys:
        recent.put(one, one)
    recent.forget(key)
    assert recent.get(key) is None
