"""Tests of reading a stream's progress: triggers, rates, and what it died of."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench import progress
from bench.progress import Rates, Trigger
from hopwatch.monitor.results import Status
from tests.support.conclusions import build_conclusion


def told(batch: int, at: str, took_ms: int, rows: int | None) -> dict[str, Any]:
    """Return what Spark tells of a trigger; without rows it found nothing to do."""
    durations = {"triggerExecution": took_ms} | ({} if rows is None else {"addBatch": took_ms - 1})
    return {"batchId": batch, "timestamp": at, "durationMs": durations, "numInputRows": rows or 0}


SAID = [
    told(0, "1970-01-01T00:00:10.000Z", 2_000, 3),
    told(1, "1970-01-01T00:00:12.000Z", 1_000, 2),
    told(2, "1970-01-01T00:00:13.000Z", 500, 0),
    told(2, "1970-01-01T00:00:20.000Z", 30, None),
]
QUERY: Any = SimpleNamespace(recentProgress=SAID, isActive=True, exception=lambda: None)


def test_triggers_that_did_something_are_told_from_idle_ones() -> None:
    """Each ends when it began and what it took; an idle one has only taken its time."""
    found = progress.triggers(SAID)
    assert found == [Trigger(0, 12.0, 2.0, 3), Trigger(1, 13.0, 1.0, 2), Trigger(2, 13.5, 0.5, 0)]
    assert progress.idle_s(SAID) == [0.03]
    assert progress.wait_until(QUERY, lambda seen: len(seen) == 3) == found


def test_rates_are_of_the_whole_query_and_from_the_second_trigger_on() -> None:
    """The first trigger's segments count in the one and not in the other."""
    found = progress.triggers(SAID)
    assert progress.rates(found, [100, 100, 100, 60, 60], 8.0) == Rates(420 / 5.5, 120 / 1.5)
    assert progress.rates([found[0]], [1, 1, 1], 8.0) == Rates(3 / 4.0, None)


def test_a_stream_that_did_not_read_all_has_no_rate() -> None:
    """Segments that no trigger has read are told."""
    with pytest.raises(RuntimeError, match=re.escape("the stream read 5 of 6 segments")):
        progress.rates(progress.triggers(SAID), [1] * 6, 0.0)


@pytest.mark.parametrize(("failure", "is_active"), [("out of memory", False), (None, False), ("late", True)])
def test_a_stream_that_died_is_told(failure: str | None, is_active: bool) -> None:  # noqa: FBT001 - a case
    """Waiting for it ends with what it died of."""
    query: Any = SimpleNamespace(recentProgress=[], isActive=is_active, exception=lambda: failure)
    with pytest.raises(RuntimeError, match=f"^the stream has died: {failure}$"):
        progress.wait_until(query, bool)


def test_a_stream_is_through_when_all_windows_are_final() -> None:
    """Windows count that are final with nothing in flight and start before the end; each counts once."""
    finals = progress.FinalWindows(2, 120)

    def say(start_us: int, *, is_final: bool = True, in_flight: int = 0) -> None:
        result = build_conclusion(status=Status.FINAL if is_final else Status.PROVISIONAL).result
        finals.note([replace(result, stream="s0", window_start_us=start_us, in_flight=in_flight)])

    for start_us in (0, 0, 120):
        say(start_us)
    say(60, is_final=False)
    say(60, in_flight=1)
    assert not finals._all.is_set()
    say(60)
    assert finals._all.is_set()
    finals._all_s = 13.2
    assert finals.wait(QUERY)[-1].end_s == 13.5
