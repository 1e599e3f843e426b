"""Laws of the outlier detector: it never looks ahead, forgets nothing in a restart, and knows no names and no units."""

from __future__ import annotations

from typing import Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopwatch.monitor.outliers import detector, state
from hopwatch.monitor.outliers.detector import Scores
from hopwatch.monitor.outliers.state import States
from tests.support.examples import examples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST, MOST = 300, 1_500


@st.composite
def histories(draw: st.DrawFn) -> tuple[Ints, Floats]:
    """Draw moments and values: noise of some kind and step, with spikes, a shift of mean, a still stretch and gaps."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(LEAST, MOST))
    step_s = draw(st.sampled_from([60, 300, 3_600]))
    values = draw(
        st.sampled_from([dice.normal(20, 3, count), dice.poisson(4, count) * 1.0, dice.lognormal(2, 1, count)])
    )
    values[dice.random(count) < draw(st.sampled_from([0.0, 0.005]))] *= 30
    at = draw(st.integers(LEAST // 2, count))
    values[at:] += draw(st.sampled_from([0.0, 0.0, 15.0]))
    still = draw(st.integers(0, count))
    values[still : still + draw(st.sampled_from([0, 0, 60]))] = values[min(still, count - 1)]
    values[dice.random(count) < draw(st.sampled_from([0.0, 0.02]))] = np.nan
    moments_us = 1_767_571_200_000_000 + step_s * 1_000_000 * np.arange(count)
    moments_us[at:] += draw(st.sampled_from([0, 0, 500])) * step_s * 1_000_000
    return moments_us, values


def followed(states: States, moments_us: Ints, values: Floats, row: int = 0) -> tuple[States, Scores]:
    """Let one series go on."""
    return detector.score_values(states, np.full(len(values), row), moments_us, values)


def same(left: Scores, right: Scores, upto: slice = slice(None)) -> bool:
    """Return whether two answers are the same to the bit, up to ``upto`` of the first."""
    names = Scores.__dataclass_fields__
    return all(np.array_equal(getattr(left, one)[upto], getattr(right, one), equal_nan=True) for one in names)


@given(histories(), st.floats(0, 1))
def test_the_past_does_not_depend_on_what_follows(history: tuple[Ints, Floats], share: float) -> None:
    """The scores of a part alone are those of the whole on that part: nothing looks ahead or knows the length."""
    moments_us, values = history
    cut = round(share * len(values))
    _, whole = followed(state.new_states(1), moments_us, values)
    _, part = followed(state.new_states(1), moments_us[:cut], values[:cut])
    assert same(whole, part, slice(cut))


@given(histories(), st.lists(st.integers(0, MOST), max_size=4))
def test_a_restart_from_bytes_changes_nothing(history: tuple[Ints, Floats], stops: list[int]) -> None:
    """Stopped anywhere, kept as bytes and begun again, it says and remembers what it would have said and remembered."""
    moments_us, values = history
    after, whole = followed(state.new_states(1), moments_us, values)
    states, scores = state.new_states(1), []
    for part in np.split(np.arange(len(values)), sorted(min(stop, len(values)) for stop in stops)):
        states, said = followed(state.from_bytes(state.to_bytes(states)), moments_us[part], values[part])
        scores.append(said)
    joined = {name: np.concatenate([getattr(one, name) for one in scores]) for name in Scores.__dataclass_fields__}
    assert same(whole, Scores(**joined))
    assert state.to_bytes(states) == state.to_bytes(after)


@settings(max_examples=examples(20))
@given(histories(), histories(), st.permutations(range(3)))
def test_a_stream_of_many_is_a_batch_of_each(
    one: tuple[Ints, Floats], other: tuple[Ints, Floats], places: list[int]
) -> None:
    """Minute by minute beside others, and in whatever row, a series gets the scores that it gets by itself."""
    count = min(len(one[1]), len(other[1]))
    alone = [
        followed(state.new_states(1), moments_us[:count], values[:count])[1] for moments_us, values in (one, other)
    ]
    rows = np.tile(np.array(places[:2]), count)
    moments_us = np.stack((one[0][:count], other[0][:count]), axis=1).ravel()
    values = np.stack((one[1][:count], other[1][:count]), axis=1).ravel()
    _, together = detector.score_values(state.new_states(3), rows, moments_us, values)
    assert same_every_other(together, 0, alone[0])
    assert same_every_other(together, 1, alone[1])


def same_every_other(together: Scores, first: int, alone: Scores) -> bool:
    """Return whether every other answer from ``first`` on is that of a series alone."""
    names = Scores.__dataclass_fields__
    parts = {name: getattr(together, name)[first::2] for name in names}
    return same(Scores(**parts), alone)


UNITS: Final = [(1_000.0, 7.0), (0.001, 0.0), (1.0, -1e6), (2.0, 0.0)]


@given(histories(), st.sampled_from(UNITS))
def test_another_unit_gives_the_same_alarms(history: tuple[Ints, Floats], unit: tuple[float, float]) -> None:
    """A series times a factor plus a constant has the same episodes and, but for rounding, the same scores."""
    moments_us, values = history
    factor, constant = unit
    _, plain = followed(state.new_states(1), moments_us, values)
    _, other = followed(state.new_states(1), moments_us, values * factor + constant)
    clear = ~np.isnan(plain.score) & (np.abs(plain.score - detector.NOTICE) > 0.05)
    assert np.mean(np.abs(plain.score - other.score)[clear] < 0.05) > 0.99
    assert plain.notice.sum() == other.notice.sum()


@given(histories(), st.integers(0, 2**32))
def test_a_gap_leaves_no_trace(history: tuple[Ints, Floats], seed: int) -> None:
    """With minutes in between that hold no value, it says and remembers what it says and remembers without them."""
    moments_us, values = history
    dice = np.random.default_rng(seed)
    is_gap = dice.random(2 * len(values)) < 0.3
    is_gap[np.flatnonzero(~is_gap)[len(values) :]] = True
    places = np.flatnonzero(~is_gap)[: len(values)]
    moments_us, values = moments_us[: len(places)], values[: len(places)]
    filled, at_us = np.full(len(is_gap), np.nan), np.full(len(is_gap), moments_us[0])
    filled[places], at_us[places] = values, moments_us
    filled[is_gap] = dice.choice([np.nan, np.inf, -np.inf], is_gap.sum())
    bare, plain = followed(state.new_states(1), moments_us, values)
    gapped, scores = followed(state.new_states(1), at_us, filled)
    assert state.to_bytes(gapped) == state.to_bytes(bare)
    assert np.array_equal(scores.score[places], plain.score, equal_nan=True)
    assert np.isnan(scores.score[is_gap]).all()
    assert not scores.notice[is_gap].any()


@given(histories())
def test_every_outlier_lies_in_an_episode_that_was_noticed(history: tuple[Ints, Floats]) -> None:
    """Between two notices there is at most one outlier, and none before the first; an episode begins at its notice."""
    moments_us, values = history
    _, scores = followed(state.new_states(1), moments_us, values)
    episodes = np.cumsum(scores.notice)
    assert (np.bincount(episodes[scores.outlier], minlength=1)[1:] <= 1).all()
    assert not (scores.outlier & (episodes == 0)).any()
    assert (scores.since_us[scores.notice] == moments_us[scores.notice]).all()
    assert (scores.score[scores.outlier] >= detector.OUTLIER).all()
    assert (scores.score[scores.notice] >= detector.NOTICE).all()
    told_already = (scores.since_us > 0) & ~scores.notice & ~scores.outlier
    assert (scores.score[told_already] < detector.NOTICE / 2).all()


@given(histories())
def test_what_goes_in_stays_as_it_was(history: tuple[Ints, Floats]) -> None:
    """The memory that was given is not written to, and the same input gives the same answer."""
    before = state.new_states(2)
    kept = state.to_bytes(before)
    first, scores = followed(before, *history, row=1)
    second, again = followed(before, *history, row=1)
    assert state.to_bytes(before) == kept
    assert state.to_bytes(first) == state.to_bytes(second)
    assert same(scores, again)
