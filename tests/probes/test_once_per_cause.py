"""Tests of what is logged once per cause."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.once_per_cause import MAX_CAUSES, OncePerCause


@given(st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b"]))))
def test_a_cause_is_new_once_between_two_rearms(calls: list[str | None]) -> None:
    """None in the list is that what failed works again, which says whether anything was logged since the last time."""
    once, seen = OncePerCause(), set[str]()
    for cause in calls:
        if cause is None:
            assert once.rearm() is bool(seen)
            seen.clear()
        else:
            assert once.is_new(cause) is (cause not in seen)
            seen.add(cause)


def test_causes_without_end_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Beyond the bound no cause is new until it works again, and one line of the log says so."""
    once, line = OncePerCause(), f"{MAX_CAUSES} different causes of a failure were logged; further ones are not logged"
    for _ in range(2):
        assert sum(once.is_new(str(number)) for number in range(MAX_CAUSES)) == MAX_CAUSES
        assert caplog.messages == []
        assert not any(once.is_new(str(number)) for number in range(2 * MAX_CAUSES))
        assert caplog.messages == [line]
        caplog.clear()
        assert once.rearm()


def test_of_threads_with_one_cause_one_logs_it() -> None:
    """Of threads with one cause at one moment, exactly one logs it."""
    once, begin, new = OncePerCause(), threading.Barrier(8), list[bool]()

    def ask() -> None:
        begin.wait()
        new.append(once.is_new("a"))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(new) == 1
