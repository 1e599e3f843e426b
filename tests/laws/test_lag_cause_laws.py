"""Laws of likely causes of lag: they are those of the reference model, and in made worlds the cause that was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.causes import rank_lag_causes
from hopwatch.monitor.kernel.label_lags import (
    MAX_SPANS,
    BatchDepartures,
    LabelLagTally,
    count_label_lags,
    find_spans,
    merge_label_lags,
    split_label_lags,
)
from hopwatch.monitor.kernel.labels import KeyKind, LabelKey, LabelledBatches
from hopwatch.monitor.results import LabelCounts, LabelValueKind
from tests.laws.lag_cause_worlds import make_lag_world
from tests.model.label_lags import find_lag_causes

Rows = tuple[LabelCounts, ...]
Cell = tuple[int, tuple[tuple[str, str], ...], int, int, int]

_SLOW: Final = st.one_of(st.just(0), st.integers(0, 30), st.integers(0, 10_000))
_LABELS: Final = st.sampled_from([(), (("host", "a"),), (("host", "b"),), (("host", "b"), ("zone", "z"))])
_CELLS: Final = st.lists(
    st.tuples(st.integers(0, 1), _LABELS, st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)), min_size=1
)


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Draw the rows by label of a node: some values are slow, others not."""
    rows: list[LabelCounts] = []
    for label in ("host", "partition"):
        kinds = [*([LabelValueKind.VALUE] * draw(st.integers(0, 6))), LabelValueKind.OTHER, LabelValueKind.NONE]
        for number, kind in enumerate(kinds):
            slow, departures = draw(_SLOW), draw(_SLOW)
            value = f"v{number}" if kind is LabelValueKind.VALUE else ""
            dispersion = draw(st.sampled_from([1.0, 1.0, 2.5, 40.0, None]))
            if kind is LabelValueKind.OTHER or not slow + departures:
                dispersion = None
            rows.append(
                LabelCounts(
                    label, "norm", kind, value, 1, 0, 0, 0, 0,
                    departures=slow + departures, slow=slow, slow_dispersion=dispersion,
                )
            )  # fmt: skip
        rows.append(LabelCounts(label, "router", LabelValueKind.VALUE, "a", 1, 0, 0, 0, 0))
    return tuple(rows)


@given(tables())
def test_causes_of_lag_are_those_of_the_model(rows: Rows) -> None:
    """In the same order, with the same figures."""
    assert [asdict(cause) for cause in rank_lag_causes(rows)] == find_lag_causes([asdict(row) for row in rows])


@given(tables())
def test_a_cause_of_lag_is_at_least_twice_as_often_slow(rows: Rows) -> None:
    """As all that the node says another value of, or none; together they are all that departed."""
    for cause in rank_lag_causes(rows):
        own = [row for row in rows if (row.label, row.said_at) == (cause.label, "norm")]
        assert cause.slow + cause.other_slow == sum(row.slow or 0 for row in own)
        assert cause.departures + cause.other_departures == sum(row.departures or 0 for row in own)
        assert cause.slow * cause.other_departures >= 2 * cause.other_slow * cause.departures


def _count(cells: list[Cell]) -> LabelLagTally | None:
    cells = sorted(cells, key=lambda cell: cell[0])
    departures, slow, span = (np.array([cell[place] for cell in cells], np.int64) for place in (3, 4, 2))
    batches = LabelledBatches([cell[0] for cell in cells], [cell[1] for cell in cells], departures)
    return count_label_lags(batches, BatchDepartures(departures, np.minimum(slow, departures), span))


@given(_CELLS, st.data())
def test_shards_of_departures_by_label_are_added(cells: list[Cell], data: st.DataObject) -> None:
    """In any order; of a shard in which no batch has a label nothing is counted, and all values may be kept."""
    whole = _count(cells)
    labelled = [cell for cell in cells if cell[1]]
    cut = data.draw(st.integers(0, len(labelled)))
    # What has no label is with what has one.
    parts = [labelled[:cut], [*labelled[cut:], *(cell for cell in cells if not cell[1])]]
    tallies = [_count(part) for part in parts]
    kept = () if whole is None else whole.keys
    of_nodes = {node: {cell[0] for cell in part if cell[1]} for node, part in enumerate(parts)}
    if of_nodes[0] | of_nodes[1] == of_nodes[1]:
        for some in (tallies, tallies[::-1]):
            merged = merge_label_lags(some, kept)
            assert split_label_lags(merged) == split_label_lags(whole)


def test_values_beyond_the_bound_are_one() -> None:
    """Values that are counted together by label are together here, and labels beyond the bound are not counted."""
    tally = _count([(0, (("host", value), ("zone", "z")), 0, 2, 1) for value in "abc"])
    kept = [LabelKey(0, "host", KeyKind.VALUE, "b"), LabelKey(0, "host", KeyKind.OTHER, "")]
    found = split_label_lags(merge_label_lags([tally], kept))
    assert {key: {value: of[:2] for value, of in values.items()} for key, values in found.items()} == {
        (0, "host"): {
            (LabelValueKind.VALUE, "b"): (2, 1),
            (LabelValueKind.OTHER, ""): (4, 2),
            (LabelValueKind.NONE, ""): (0, 0),
        }
    }


def test_spans_of_arrivals_are_bounded() -> None:
    """The first span has all that came before the window, and the last one all that came very late."""
    arrivals_us = np.array([-1, 0, 1_999_999, 2_000_000, 2**62])
    assert find_spans(arrivals_us, 0).tolist() == [0, 0, 0, 1, MAX_SPANS - 1]


@pytest.mark.parametrize("causes", [1, 2])
def test_the_first_cause_of_lag_is_one_that_was_made(causes: int, times: Callable[[int, int], int]) -> None:
    """In at least 95 % of the worlds in which one is named, which are at least three of four.

    Where messages are slow in clusters anyway, a cause that is slow now and then may not be told from them.
    """
    worlds = [make_lag_world(seed, causes) for seed in range(times(30, 500))]
    first = [[cause for cause in rank_lag_causes(world.rows) if cause.rank == 1] for world in worlds]
    right = [
        any((cause.label, cause.value) in world.guilty for cause in own)
        for world, own in zip(worlds, first, strict=True)
        if own
    ]
    assert len(right) >= 0.75 * len(worlds)
    assert sum(right) >= 0.95 * len(right)


def test_clusters_make_few_causes_of_lag(times: Callable[[int, int], int]) -> None:
    """In worlds where no value makes a difference, and messages are slow in clusters, at most 5 % name one."""
    worlds = [make_lag_world(seed, 0) for seed in range(times(30, 500))]
    assert sum(bool(rank_lag_causes(world.rows)) for world in worlds) <= 0.05 * len(worlds)
