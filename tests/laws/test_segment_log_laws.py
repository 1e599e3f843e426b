"""Laws of Spark's log of segments: what is forgotten is gone and will not be read again, and nothing else."""

from __future__ import annotations

import json
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.spark.sources import segment_log

BATCHES: Final = st.integers(0, 12)
PATHS: Final = st.integers(0, 8).map(lambda number: f"file:///spool/a/{number:010d}.seg")
LINES: Final = st.lists(
    st.builds(lambda path, batch: json.dumps({"path": path, "timestamp": 1, "batchId": batch}), PATHS, BATCHES)
)
GONE: Final = st.sets(PATHS)


@given(LINES, BATCHES, GONE)
def test_a_line_is_forgotten_only_if_its_segment_is_gone_and_its_batch_is_past(
    lines: list[str], replayed_from: int, gone: set[str]
) -> None:
    """All others stay as they are, in their order."""
    kept = list(segment_log.remaining_lines(lines, replayed_from, gone.__contains__))
    told = [(line, json.loads(line)) for line in lines]
    assert kept == [line for line, one in told if one["batchId"] >= replayed_from or one["path"] not in gone]


@given(LINES, BATCHES, GONE)
def test_to_forget_twice_is_to_forget_once(lines: list[str], replayed_from: int, gone: set[str]) -> None:
    """A start that finds nothing new changes nothing."""
    once = list(segment_log.remaining_lines(lines, replayed_from, gone.__contains__))
    assert list(segment_log.remaining_lines(once, replayed_from, gone.__contains__)) == once


@given(LINES, BATCHES, BATCHES, GONE, GONE)
def test_to_forget_as_segments_go_is_to_forget_at_the_end(
    lines: list[str], one: int, another: int, gone: set[str], gone_later: set[str]
) -> None:
    """Removing lines of gone segments in two steps leaves the same lines as in one."""
    early, late = sorted((one, another))
    often = segment_log.remaining_lines(lines, early, gone.__contains__)
    all_gone = gone | gone_later
    assert list(segment_log.remaining_lines(often, late, all_gone.__contains__)) == list(
        segment_log.remaining_lines(lines, late, all_gone.__contains__)
    )
