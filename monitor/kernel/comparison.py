"""Comparison of a candidate with a baseline: how much more often its messages are lost, or slow, with an interval.

Both are compared window by window, so that a minute in which all goes wrong tells nothing against a candidate that has
more messages then. SEMANTICS.md, "Candidate and baseline", defines all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

MIN_WINDOWS: Final = 5
"""Windows in which both must have messages: from fewer nobody can tell how much a difference varies."""
CONFIDENCE: Final = 0.95
"""Share of intervals that have the true difference in them."""
_TAIL: Final = (1 - CONFIDENCE) / 2


class ComparisonVerdict(StrEnum):
    """Verdict on a candidate: worse by more than is tolerated, not worse by more than that, or neither is known."""

    WORSE = "WORSE"
    NOT_WORSE = "NOT_WORSE"
    UNKNOWN = "UNKNOWN"


class WindowShares(NamedTuple):
    """Messages of a candidate and of its baseline in a window, and how many of them are bad: lost, or slow."""

    bad: int
    messages: int
    other_bad: int
    other_messages: int


class ShareDifference(NamedTuple):
    """Difference between the bad shares of a candidate and of its baseline, with an interval of 95 %.

    ``bad`` of ``messages`` of the candidate and ``other_bad`` of ``other_messages`` of the baseline are those of the
    ``windows`` in which both have messages.
    """

    windows: int
    bad: int
    messages: int
    other_bad: int
    other_messages: int
    share: float
    lower: float
    upper: float


def compare_shares(windows: Sequence[WindowShares]) -> ShareDifference | None:
    """Return how much larger the bad share of a candidate is; None if too few windows have messages of both.

    The difference is that of Mantel and Haenszel. Its interval puts those of two shares together by the method of
    Newcombe ("Interval estimation for the difference between independent proportions", 1998); each is that of Korn and
    Graubard ("Confidence intervals for proportions with small expected number of positive counts", 1998): exact
    limits, for as many messages as the spread of the difference over windows makes them worth.
    """
    counts: NDArray[np.float64] = np.array([one for one in windows if one.messages and one.other_messages], np.float64)
    if len(counts) < MIN_WINDOWS:
        return None
    bad, messages, other_bad, other_messages = counts.T
    weights = messages * other_messages / (messages + other_messages)
    weights /= weights.sum()
    shares = float(weights @ (bad / messages)), float(weights @ (other_bad / other_messages))
    share = shares[0] - shares[1]
    # Kish: so many messages would be worth as much if all windows weighed alike.
    worth = [1 / float((weights**2 / own).sum()) for own in (messages, other_messages)]
    by_chance = sum(one * (1 - one) / own for one, own in zip(shares, worth, strict=True))
    apart = bad / messages - other_bad / other_messages - share
    seen = len(counts) / (len(counts) - 1) * float((weights**2 * apart**2).sum())
    dispersion = max(1.0, seen / by_chance) if by_chance > 0 else 1.0
    # Few windows tell little about how much the difference varies.
    dispersion *= float(stdtrit(len(counts) - 1, 1 - _TAIL) / ndtri(1 - _TAIL)) ** 2
    (low, high), (other_low, other_high) = (
        _limit_share(one, own / dispersion) for one, own in zip(shares, worth, strict=True)
    )
    lower = share - sqrt((shares[0] - low) ** 2 + (other_high - shares[1]) ** 2)
    upper = share + sqrt((high - shares[0]) ** 2 + (shares[1] - other_low) ** 2)
    sums = WindowShares(*(int(column.sum()) for column in counts.T))
    return ShareDifference(len(counts), *sums, share, max(-1.0, lower), min(1.0, upper))


def _limit_share(share: float, messages: float) -> tuple[float, float]:
    """Return the limits of Clopper and Pearson of a share of so many messages, which need not be a whole number."""
    bad = share * messages
    low = float(betaincinv(bad, messages - bad + 1, _TAIL)) if share > 0 else 0.0
    high = float(betaincinv(bad + 1, messages - bad, 1 - _TAIL)) if share < 1 else 1.0
    return low, high


def judge_difference(difference: ShareDifference | None, tolerance: float, unsure: float = 0.0) -> ComparisonVerdict:
    """Return the verdict on a difference, where a candidate may be bad by a share more than its baseline.

    Args:
        difference: of all windows that tell it.
        tolerance: the share, from 0 to 1.
        unsure: the share of the candidate's messages in windows that do not tell what is bad.
    """
    if difference is None:
        return ComparisonVerdict.UNKNOWN
    if difference.lower > tolerance:
        return ComparisonVerdict.WORSE
    # At worst, all that is not known of the candidate is bad.
    if difference.upper * (1 - unsure) + unsure <= tolerance:
        return ComparisonVerdict.NOT_WORSE
    return ComparisonVerdict.UNKNOWN
