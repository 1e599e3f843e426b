"""Tests of what is made once for all who look at it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from hopwatch.monitor.memo import Identity, Memo


def test_fifty_viewers_are_one_making() -> None:
    """The others wait for it and get the same object."""
    made: list[object] = []
    once, subject, all_here = Memo(9), object(), threading.Barrier(50)

    def make() -> object:
        made.append(object())
        return made[-1]

    def look(_: int) -> object:
        all_here.wait()
        return once.get_or_build((Identity(subject), "chart"), make)

    with ThreadPoolExecutor(50) as viewers:
        found = set(viewers.map(look, range(50)))
    assert found == set(made)
    assert len(made) == 1


def test_another_subject_or_key_is_made_anew() -> None:
    """Equal subjects are not the same one."""
    once, numbers = Memo(9), iter(range(9))
    first, like = [1], [1]
    told = [
        once.get_or_build((Identity(subject), key), lambda: next(numbers))
        for subject, key in ((first, "a"), (like, "a"), (first, "b"))
    ]
    assert told == [0, 1, 2]
    assert once.get_or_build((Identity(first), "a"), lambda: next(numbers)) == 0


def test_so_many_are_kept_at_most() -> None:
    """The one that was looked at longest ago goes."""
    once, subject = Memo(2), object()
    for key in "abc":
        once.get_or_build((Identity(subject), key), lambda key=key: key)  # type: ignore[misc]  # bound as a default
    assert once.get_or_build((Identity(subject), "a"), lambda: "anew") == "anew"


def test_a_build_that_fails_is_tried_again() -> None:
    """An error is no value, and the next who asks builds anew."""
    memo, tries = Memo(9), iter([ValueError("not now"), "built"])

    def build() -> str:
        outcome = next(tries)
        if isinstance(outcome, ValueError):
            raise outcome
        return str(outcome)

    with pytest.raises(ValueError, match="not now"):
        memo.get_or_build("a", build)
    assert memo.get("a") is None
    assert memo.get_or_build("a", build) == "built"


def test_what_is_put_replaces_what_was_there() -> None:
    """And only what is there is found."""
    memo = Memo(9)
    assert memo.get("a") is None
    for value in (1, 2):
        memo.put("a", value)
        assert memo.get("a") == value


def test_builds_that_fail_drive_no_value_out() -> None:
    """Only what was built takes a place."""
    memo = Memo(2)
    assert [memo.get_or_build(key, lambda: 1) for key in ("a", "b")] == [1, 1]

    def fail() -> int:
        raise ValueError

    for key in range(5):
        with suppress(ValueError):
            memo.get_or_build(key, fail)
    assert [memo.get("a"), memo.get("b")] == [1, 1]
