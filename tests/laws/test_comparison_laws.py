"""Laws of comparisons: they are those of the reference model, and their intervals have the true difference in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.comparison import (
    MIN_WINDOWS,
    ComparisonVerdict,
    WindowShares,
    compare_shares,
    judge_difference,
)
from tests.laws.comparison_worlds import make_windows
from tests.model.comparison import difference

_MESSAGES: Final = st.one_of(st.integers(0, 3), st.integers(0, 100), st.integers(0, 10**7))


@st.composite
def shares(draw: st.DrawFn) -> WindowShares:
    """Draw a window: nothing, some or all of the messages of each are bad."""
    sizes = draw(_MESSAGES), draw(_MESSAGES)
    bad = [draw(st.one_of(st.just(0), st.just(size), st.integers(0, size))) for size in sizes]
    return WindowShares(bad[0], sizes[0], bad[1], sizes[1])


WINDOWS: Final = st.lists(shares(), max_size=12)


@given(WINDOWS)
def test_a_difference_is_that_of_the_model(windows: list[WindowShares]) -> None:
    """Of windows of any size; none where too few have messages of both."""
    found, expected = compare_shares(windows), difference(list(windows))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found._asdict() == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(WINDOWS)
def test_an_interval_holds_its_difference(windows: list[WindowShares]) -> None:
    """In any order of windows; candidate and baseline in each other's place turn its sign."""
    found = compare_shares(windows)
    if found is None:
        return
    assert -1 <= found.lower <= found.share + 1e-12
    assert found.share - 1e-12 <= found.upper <= 1
    mirrored = compare_shares([WindowShares(*one[2:], *one[:2]) for one in windows])
    assert mirrored is not None
    assert [mirrored.share, mirrored.lower, mirrored.upper] == pytest.approx(
        [-found.share, -found.upper, -found.lower], abs=1e-9
    )
    assert compare_shares(windows[::-1]) == pytest.approx(found, abs=1e-9)


@given(WINDOWS, shares())
def test_a_window_of_one_of_them_alone_changes_nothing(windows: list[WindowShares], more: WindowShares) -> None:
    """The other has no messages there to compare with."""
    alone = [more._replace(bad=0, messages=0), more._replace(other_bad=0, other_messages=0)]
    assert compare_shares([*alone, *windows]) == compare_shares(windows)


@given(WINDOWS, st.floats(0, 1), st.floats(0, 1))
def test_verdicts_are_of_the_interval(windows: list[WindowShares], tolerance: float, unsure: float) -> None:
    """Worse above the tolerance, not worse below it, and what is not known makes no candidate good."""
    found = compare_shares(windows)
    verdict, surely = judge_difference(found, tolerance, unsure), judge_difference(found, tolerance)
    if found is None:
        assert verdict is ComparisonVerdict.UNKNOWN
    else:
        assert (surely is ComparisonVerdict.WORSE) == (found.lower > tolerance)
        assert (surely is ComparisonVerdict.NOT_WORSE) == (found.upper <= tolerance)
        assert verdict in {surely, ComparisonVerdict.UNKNOWN} or unsure == 0
        assert verdict is not ComparisonVerdict.NOT_WORSE or unsure <= tolerance + 1e-12 or found.upper < 0


def test_zero_of_so_many_is_not_worse() -> None:
    """Nothing is lost of either: with enough messages that is no more than a tolerance, with few it is not known."""
    few, many = ([WindowShares(0, size, 0, 10 * size)] * MIN_WINDOWS for size in (100, 5_000))
    assert judge_difference(compare_shares(few), 0.001) is ComparisonVerdict.UNKNOWN
    assert judge_difference(compare_shares(many), 0.001) is ComparisonVerdict.NOT_WORSE


@pytest.mark.parametrize("cluster", [1, 5, 20, 100])
@pytest.mark.parametrize("more", [0.0, 0.001, 0.01, 0.03])
def test_no_candidate_is_worse_by_chance(times: Callable[[int, int], int], cluster: int, more: float) -> None:
    """Also where messages are lost together, and in outages: one world of forty at most has a lower limit over it."""
    worlds = times(200, 5_000)
    found = [compare_shares(make_windows(seed, more, cluster)) for seed in range(worlds)]
    told = [one for one in found if one is not None]
    assert len(told) > 0.9 * worlds
    assert sum(one.lower > more for one in told) <= 0.025 * worlds
    if cluster == 1:
        assert sum(one.upper < more for one in told) <= 0.025 * worlds
    if more == 0.03 and cluster == 1:
        assert sum(one.lower > 0 for one in told) >= 0.7 * worlds
