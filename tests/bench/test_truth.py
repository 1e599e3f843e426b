"""Tests of the truth: what is there passes, and whatever else is found is refused with where and what."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.truth import LAGS, QUANTILES, ExpectedResults, Found, Key, WrongResultError, print_of
from bench.work import Block, Work, blocks

WORK = Work(40_000, streams=2, minutes=2)
KEY = (1, 0, 2)


def exactly(block: Block) -> Found:
    """Return what there is to find in a block, by numpy."""
    lags = (block.lag_in_us, block.lag_out_us, block.lag_out_us - block.lag_in_us)
    exact = tuple(tuple(np.quantile(lag, QUANTILES).tolist()) for lag in lags)
    return Found(len(block.message_ids), len(block.lost_ids), print_of(block.lost_ids), exact)


@pytest.fixture
def there() -> dict[Key, Found]:
    """Return all that there is to find."""
    return {(block.stream, block.window, block.node): exactly(block) for block in blocks(WORK)}


def test_what_is_there_passes(there: dict[Key, Found]) -> None:
    """Exact counts, ids and quantiles are what a contestant has to find."""
    truth = ExpectedResults.from_blocks(blocks(WORK))
    truth.check("numpy", there)
    assert truth.observations == sum(found.seen for found in there.values())
    assert sum(found.lost for found in there.values()) > 0


def test_truth_is_kept_in_a_file(there: dict[Key, Found], tmp_path: Path) -> None:
    """A truth that was saved and loaded accepts the same results."""
    ExpectedResults.from_blocks(blocks(WORK)).save(tmp_path / "truth.npz")
    ExpectedResults.load(tmp_path / "truth.npz").check("numpy", there)


WRONG: dict[str, tuple[Callable[[Found], Found], str]] = {
    "seen": (lambda found: found._replace(seen=found.seen + 1), r"seen and [\d,]+ lost, got [\d,]+ and [\d,]+$"),
    "lost": (lambda found: found._replace(lost=found.lost - 1), r"seen and [\d,]+ lost, got [\d,]+ and [\d,]+$"),
    "ids": (
        lambda found: found._replace(lost_print=print_of(np.zeros((found.lost, 2), np.uint64))),
        r"\d+ ids are lost, and others were named$",
    ),
    "p99": (
        lambda found: found._replace(lags=((*found.lags[0][:2], 1e9), *found.lags[1:])),
        r"p99 of lag_in_us is within [\d,]+ and [\d,]+, got 1,000,000,000\.0$",
    ),
    "inside": (
        lambda found: found._replace(lags=(*found.lags[:2], (-1.0, *found.lags[2][1:]))),
        r"p50 of inside_us is within [\d,]+ and [\d,]+, got -1\.0$",
    ),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_figure_is_refused(there: dict[Key, Found], change: Callable[[Found], Found], said: str) -> None:
    """One wrong figure of one node in one window is refused, with its place."""
    there[KEY] = change(there[KEY])
    with pytest.raises(WrongResultError, match=rf"^peer, stream 1, window 0, node n2: .*{said}"):
        ExpectedResults.from_blocks(blocks(WORK)).check("peer", there)


def test_a_window_that_is_missing_is_refused(there: dict[Key, Found]) -> None:
    """Fewer windows of nodes than there are, or another one in place of one, are refused."""
    truth = ExpectedResults.from_blocks(blocks(WORK))
    found = there.pop(KEY)
    with pytest.raises(WrongResultError, match=re.escape("peer found 15 windows of nodes, there are 16")):
        truth.check("peer", there)
    there[7, 7, 3] = found
    with pytest.raises(WrongResultError, match=re.escape("peer, stream 1, window 0, node n2: nothing was found")):
        truth.check("peer", there)


def test_a_print_knows_no_order() -> None:
    """The same ids in another order are the same set, and none is a set too."""
    ids = np.arange(20, dtype=np.uint64).reshape(-1, 2)
    assert print_of(ids) == print_of(ids[::-1]) == print_of(ids.view(np.int64))
    assert print_of(ids) != print_of(ids[1:])
    assert print_of(ids[:0]) != print_of(ids[:1])


def test_every_lag_has_its_brackets() -> None:
    """For each lag and quantile there is a least and a most."""
    truth = ExpectedResults.from_blocks(blocks(WORK))
    assert truth.lags.shape == (16, len(LAGS), len(QUANTILES), 2)
    assert (truth.lags[..., 0] <= truth.lags[..., 1]).all()
