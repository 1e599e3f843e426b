"""Difference of two shares over windows with its interval, one window after the other, as SEMANTICS.md defines it."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any

from scipy import stats

Row = tuple[int, int, int, int]
"""Bad and all messages of the candidate in a window, and bad and all of the baseline."""


def difference(windows: list[Row]) -> dict[str, Any] | None:
    """Give the difference of all windows that have messages of both, if they are five or more."""
    told = [row for row in windows if row[1] > 0 and row[3] > 0]
    if len(told) < 5:
        return None
    weights = [Fraction(row[1] * row[3], row[1] + row[3]) for row in told]
    whole = sum(weights)
    parts = [weight / whole for weight in weights]
    share = sum((part * Fraction(row[0], row[1]) for part, row in zip(parts, told, strict=True)), Fraction(0))
    other = sum((part * Fraction(row[2], row[3]) for part, row in zip(parts, told, strict=True)), Fraction(0))
    worth = 1 / sum(part**2 / row[1] for part, row in zip(parts, told, strict=True))
    other_worth = 1 / sum(part**2 / row[3] for part, row in zip(parts, told, strict=True))
    chance = share * (1 - share) / worth + other * (1 - other) / other_worth
    spread = Fraction(len(told), len(told) - 1) * sum(
        part**2 * (Fraction(row[0], row[1]) - Fraction(row[2], row[3]) - (share - other)) ** 2
        for part, row in zip(parts, told, strict=True)
    )
    times = max(Fraction(1), spread / chance) if chance else Fraction(1)
    quantiles = stats.t.ppf(0.975, len(told) - 1) / stats.norm.ppf(0.975)
    low, high = _limits(share, float(worth / times) / quantiles**2)
    other_low, other_high = _limits(other, float(other_worth / times) / quantiles**2)
    apart = float(share - other)
    return {
        "windows": len(told),
        "bad": sum(row[0] for row in told),
        "messages": sum(row[1] for row in told),
        "other_bad": sum(row[2] for row in told),
        "other_messages": sum(row[3] for row in told),
        "share": apart,
        "lower": max(-1.0, apart - sqrt((float(share) - low) ** 2 + (other_high - float(other)) ** 2)),
        "upper": min(1.0, apart + sqrt((high - float(share)) ** 2 + (float(other) - other_low) ** 2)),
    }


def _limits(share: Fraction, messages: float) -> tuple[float, float]:
    bad = float(share) * messages
    low = stats.beta.ppf(0.025, bad, messages - bad + 1) if share > 0 else 0.0
    high = stats.beta.ppf(0.975, bad + 1, messages - bad) if share < 1 else 1.0
    return float(low), float(high)
