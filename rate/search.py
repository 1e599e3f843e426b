"""Search for a rating: steps that double the rate, then bisection between what held and what failed. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from hopwatch.rate.step import StepState

MAX_STRETCH: Final = 4
"""A step that decides nothing is repeated twice as long, and four times as long; then its rate does not hold."""
GROWTH_FACTOR: Final = 2.0


GOLDEN_RATIO: Final = (math.sqrt(5) - 1) / 2


class SearchEnd(StrEnum):
    """Reason for the end of a search."""

    FOUND = "found"
    MAX_RATE = "max_rate"
    NEVER_HELD = "never_held"
    SENDER = "sender"
    """The sender cannot send more: the rating is at least what held."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Bounds of a search in messages a second, and the distance of rates, as a ratio, at which it ends.

    Raises:
        ValueError: the bounds are not 0 < min <= start <= max, or the tolerance is not above 0 and at most 1.
    """

    start_per_s: float
    min_per_s: float
    max_per_s: float
    tolerance_ratio: float

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not 0 < self.min_per_s <= self.start_per_s <= self.max_per_s < math.inf:
            got = f"{self.min_per_s:g}, {self.start_per_s:g} and {self.max_per_s:g}"
            raise ValueError(f"the rates are 0 < min <= start <= max, got {got}")
        if not 0 < self.tolerance_ratio <= 1:
            raise ValueError(f"the tolerance is a ratio above 0 and at most 1, got {self.tolerance_ratio:g}")


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of a search: the highest rate that held, the lowest that did not, and the next one to try."""

    held_per_s: float | None
    failed_per_s: float | None
    next_per_s: float
    stretch: int = 1
    is_again: bool = False
    """Whether the next step repeats one that was void."""
    is_sender_bound: bool = False
    """Whether the lowest rate that did not hold is one that the sender could not send."""
    end: SearchEnd | None = None


def plan_repeat(plan: SearchPlan, held_per_s: float | None, number: int) -> SearchPlan:
    """Plan a further search, counted from 1, after one that ended with a rating, or without.

    It begins at 35 to 71 % of that rating, each at another share: searches that tried the same rates would agree more
    than they measured.
    """
    if not held_per_s:
        return plan
    share = GROWTH_FACTOR ** -(0.5 + number * GOLDEN_RATIO % 1)
    return replace(plan, start_per_s=min(plan.max_per_s, max(plan.min_per_s, held_per_s * share)))


def start_search(plan: SearchPlan) -> SearchState:
    """Start a search."""
    return SearchState(None, None, plan.start_per_s)


def advance_search(plan: SearchPlan, state: SearchState, outcome: StepState) -> SearchState:
    """Return the state after a step at ``next_per_s``.

    Raises:
        ValueError: the search has ended.
    """
    if state.end is not None:
        raise ValueError(f"the search has ended ({state.end}): start another one")
    rate_per_s = state.next_per_s
    if outcome is StepState.HOLDS:
        return _choose_next(plan, replace(state, held_per_s=rate_per_s, stretch=1, is_again=False))
    if outcome is StepState.UNDECIDED and state.stretch < MAX_STRETCH:
        return replace(state, stretch=2 * state.stretch, is_again=False)
    if outcome is StepState.VOID and not state.is_again:
        return replace(state, is_again=True)
    is_sender_bound = outcome is StepState.VOID
    failed = replace(state, failed_per_s=rate_per_s, stretch=1, is_again=False, is_sender_bound=is_sender_bound)
    return _choose_next(plan, failed)


def _choose_next(plan: SearchPlan, state: SearchState) -> SearchState:
    held, failed = state.held_per_s, state.failed_per_s
    if held is None:
        if state.next_per_s <= plan.min_per_s:
            return replace(state, end=SearchEnd.SENDER if state.is_sender_bound else SearchEnd.NEVER_HELD)
        return replace(state, next_per_s=max(plan.min_per_s, state.next_per_s / GROWTH_FACTOR))
    if failed is None:
        if held >= plan.max_per_s:
            return replace(state, end=SearchEnd.MAX_RATE)
        return replace(state, next_per_s=min(plan.max_per_s, held * GROWTH_FACTOR))
    if failed / held <= 1 + plan.tolerance_ratio:
        return replace(state, end=SearchEnd.SENDER if state.is_sender_bound else SearchEnd.FOUND)
    return replace(state, next_per_s=math.sqrt(held * failed))
