"""Laws of likely causes: they are those of the reference model, and in made worlds the cause that was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import groupby
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.bursts import find_bursts
from hopwatch.monitor.kernel.causes import MAX_CAUSES, rank_causes
from hopwatch.monitor.results import SECONDS, LabelCounts, LabelValueKind
from tests.laws.cause_worlds import make_world
from tests.model.causes import mark_causes

Rows = tuple[LabelCounts, ...]

_MESSAGES: Final = st.one_of(st.integers(0, 30), st.integers(0, 100_000))


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Draw the rows by label of a node: some values lose much, many nothing."""
    rows: list[LabelCounts] = []
    for label in ("host", "partition"):
        for said_at in draw(st.lists(st.sampled_from(["norm", "router"]), unique=True).map(sorted)):
            kinds = [*([LabelValueKind.VALUE] * draw(st.integers(0, 6))), LabelValueKind.OTHER, LabelValueKind.NONE]
            for number, kind in enumerate(kinds):
                lost, more, waiting = draw(_MESSAGES) * draw(st.integers(0, 1)), draw(_MESSAGES), draw(_MESSAGES)
                if lost + more + waiting and (kind is LabelValueKind.VALUE or draw(st.booleans())):
                    value = f"v{number}" if kind is LabelValueKind.VALUE else ""
                    counts = (lost + more + waiting, 0, 0, lost, waiting)
                    rows.append(LabelCounts(label, said_at, kind, value, *counts))
    return tuple(rows)


@given(tables())
def test_causes_are_those_of_the_model(rows: Rows) -> None:
    """Of one window, in the same order, with the same figures."""
    node = {"labels": [asdict(row) for row in rows]}
    mark_causes({"nodes": [node]})
    assert [asdict(cause) for cause in rank_causes([rows])] == node["causes"]


@given(st.lists(tables(), max_size=4))
def test_figures_of_causes_add_up(windows: list[Rows]) -> None:
    """Over some windows, in any order of them: with and without a value they are all messages that settled."""
    causes = rank_causes(windows)
    assert causes == rank_causes(windows[::-1])
    assert [rank for rank, _ in groupby(cause.rank for cause in causes)] == [*range(1, MAX_CAUSES + 1)][
        : max((cause.rank for cause in causes), default=0)
    ]
    for cause in causes:
        rows = [row for rows in windows for row in rows if (row.label, row.said_at) == (cause.label, cause.said_at)]
        assert cause.lost + cause.other_lost == sum(row.loss for row in rows)
        assert cause.messages + cause.other_messages == sum(row.expected_or_seen - row.in_flight for row in rows)
        assert 0 < cause.lost <= cause.messages
        # It loses more than the others.
        assert cause.lost * cause.other_messages > cause.other_lost * cause.messages or len(windows) > 1


@given(tables(), st.integers(2, 5))
def test_more_of_the_same_makes_no_cause_less_likely(rows: Rows, times: int) -> None:
    """Windows with the same shares name all causes that one of them names, unless others are likelier."""
    one, many = rank_causes([rows]), rank_causes([rows] * times)
    assert len(many) >= len(one) or len({cause.rank for cause in many}) == MAX_CAUSES
    if one:
        assert (one[0].label, one[0].value, one[0].lost * times) == (many[0].label, many[0].value, many[0].lost)


def test_a_value_that_came_in_a_bad_minute_is_no_cause() -> None:
    """Each minute is compared with itself: in the one in which half is lost, host b has half of the messages."""

    def minute(lost: int, by_host: dict[str, int]) -> Rows:
        return tuple(
            LabelCounts("host", "router", LabelValueKind.VALUE, host, count, 0, 0, lost * count // 1_000, 0)
            for host, count in by_host.items()
        )

    windows = [minute(1, {"a": 10_000}), minute(500, {"a": 5_000, "b": 5_000})]
    assert rank_causes(windows) == ()
    joined = [replace(row, expected_or_seen=15_000, loss=2_510) if row.value == "a" else row for row in windows[1]]
    assert [cause.value for cause in rank_causes([joined])] == ["b"]


@pytest.mark.parametrize("causes", [1, 2])
def test_the_first_cause_is_one_that_was_made(causes: int, times: Callable[[int, int], int]) -> None:
    """In at least 95 % of worlds, in which causes have 1 % to 100 % of what is missing."""
    worlds = [make_world(seed, causes) for seed in range(times(60, 500))]
    right = [
        any((cause.label, cause.value) in world.guilty for cause in rank_causes(world.windows) if cause.rank == 1)
        for world in worlds
    ]
    assert sum(right) >= 0.95 * len(worlds)


def test_the_first_second_of_a_cause_is_found(times: Callable[[int, int], int]) -> None:
    """Within a second, in at least 95 % of the worlds in which a deploy or a rebalance loses enough.

    That is four messages a second, and thrice as many as are lost in the other seconds.
    """
    found = []
    for seed in range(times(250, 3_000)):
        world = make_world(seed, 1)
        for start, end in world.bursts:
            lost, messages = (np.array(counts) for counts in (world.seconds.lost, world.seconds.messages))
            outside = np.ones(SECONDS, bool)
            outside[start:end] = False
            chance = lost[outside].sum() / max(1, messages[outside].sum())
            share = lost[start:end].sum() / messages[start:end].sum()
            if share >= 3 * chance and (share - chance) * messages[start:end].mean() >= 4:
                found.append(any(abs(one.start_s - start) <= 1 for one in find_bursts(world.seconds)[:1]))
    assert len(found) >= times(10, 150)
    assert sum(found) >= 0.95 * len(found)


def test_chance_makes_no_cause(times: Callable[[int, int], int]) -> None:
    """In worlds where all messages are lost alike, or all of some seconds, none of 60 and 1 % of 500 name one."""
    worlds = [make_world(seed, 0) for seed in range(times(60, 500))]
    assert sum(bool(rank_causes(world.windows)) for world in worlds) <= 0.01 * len(worlds)
