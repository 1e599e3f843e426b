"""Tests of the work: the same each time, of the size and the loss that was asked for."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from bench.work import HOP_LOSS_RATIO, NODES, Work, WorkError, blocks


def test_work_is_of_the_size_and_the_loss_asked_for() -> None:
    """Four nodes a window, about as many observations as asked for, half a per cent lost a hop."""
    made = list(blocks(work := Work(400_000, streams=2, minutes=2)))
    assert len(made) == work.windows * len(NODES) == 16
    assert sum(len(block.message_ids) for block in made) == pytest.approx(400_000, rel=0.01)
    for before, after in pairwise(made):
        if after.node:
            assert len(after.message_ids) + len(after.lost_ids) == len(before.message_ids)
            assert len(after.lost_ids) == pytest.approx(HOP_LOSS_RATIO * len(before.message_ids), rel=0.4)


def test_the_same_work_is_the_same_bytes() -> None:
    """Blocks made again, or from the middle, are equal; event times are in order and no lag is negative."""
    work = Work(40_000, minutes=3)
    middle = [block for block in blocks(work) if block.window == 1]
    for one, again in zip(middle, blocks(work, range(1, 2)), strict=True):
        assert all(
            np.array_equal(np.asarray(column), np.asarray(same)) for column, same in zip(one, again, strict=True)
        )
        assert (np.diff(one.event_offset_us) >= 0).all()
        assert (one.lag_in_us > 0).all()
        assert (one.lag_out_us > one.lag_in_us).all()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"observations": 1_000, "streams": 10_001}, "streams is a whole number from 1 to 10,000, got 10,001"),
        ({"observations": 1_000, "batch": 65_537}, "batch is a whole number from 1 to 65,536, got 65,537"),
        ({"observations": 2_000_000_000}, "minutes is a whole number from 1 to 600, got 1,000"),
        ({"observations": 1_000, "segment_s": 0}, "segment_s is a whole number from 1 to 60, got 0"),
        ({"observations": 1_000, "labels": 4}, "labels is a whole number from 0 to 3, got 4"),
        ({"observations": 100, "streams": 100}, "100 observations do not fill the windows: take 400 or more"),
        (
            {"observations": 40_000_000, "minutes": 1},
            "a window of a node keeps 10,000 lost ids, and 1 minutes would lose more in one: take more minutes",
        ),
    ],
)
def test_work_that_cannot_be_measured_is_refused(fields: dict[str, int], said: str) -> None:
    """A number out of its range is refused with what was got and what to do."""
    with pytest.raises(WorkError, match=rf"^{re.escape(said)}$"):
        Work(**fields)
