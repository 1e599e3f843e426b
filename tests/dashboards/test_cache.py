"""Tests of what is made once for all who look at it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from hopwatch.dashboards.cache import SharedCache


def test_fifty_viewers_are_one_making() -> None:
    """The others wait for it and get the same object."""
    made: list[object] = []
    once, subject, all_here = SharedCache(), object(), threading.Barrier(50)

    def make() -> object:
        made.append(object())
        return made[-1]

    def look(_: int) -> object:
        all_here.wait()
        return once.get_or_build(subject, "chart", make)

    with ThreadPoolExecutor(50) as viewers:
        found = set(viewers.map(look, range(50)))
    assert found == set(made)
    assert len(made) == 1


def test_another_subject_or_key_is_made_anew() -> None:
    """Equal subjects are not the same one."""
    once, numbers = SharedCache(), iter(range(9))
    first, like = [1], [1]
    told = [
        once.get_or_build(subject, key, lambda: next(numbers))
        for subject, key in ((first, "a"), (like, "a"), (first, "b"))
    ]
    assert told == [0, 1, 2]
    assert once.get_or_build(first, "a", lambda: next(numbers)) == 0


def test_so_many_are_kept_at_most() -> None:
    """The one that was looked at longest ago goes."""
    once, subject = SharedCache(most=2), object()
    for key in "abc":
        once.get_or_build(subject, key, lambda key=key: key)  # type: ignore[misc]  # bound as a default
    assert once.get_or_build(subject, "a", lambda: "anew") == "anew"
