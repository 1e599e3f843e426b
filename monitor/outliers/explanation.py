"""Explanation of an outlier, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hopwatch.monitor.outliers.detector import Scores
from hopwatch.monitor.outliers.quantities import Quantity, from_scale
from hopwatch.monitor.outliers.views import VIEWS

MAX_REASONS: Final = 3
"""Views named as reasons at most: as many as make up the score."""
MAX_ONCE_IN: Final = 1_000_000
"""Rarity shown at most: no past is long enough to measure more."""


@dataclass(frozen=True, slots=True)
class SurpriseReason:
    """A view that was surprised: once in ``once_in`` values of the past was it this strange."""

    view: str
    words: str
    once_in: float

    @property
    def rarity(self) -> str:
        """Rarity in words."""
        return f"once in {self.once_in:,.0f}" if self.once_in < MAX_ONCE_IN else f"rarer than once in {MAX_ONCE_IN:,}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Observed and expected value in the quantity's own unit, and the reasons for the surprise.

    ``low`` and ``high`` are None while the series is too young to expect anything.
    """

    quantity: Quantity
    observed: float
    low: float | None
    high: float | None
    reasons: tuple[SurpriseReason, ...]
    since_us: int
    score: float

    def __str__(self) -> str:
        """Return it in a sentence."""
        expected = "" if self.low is None or self.high is None else f", expected {self.low:.4g} to {self.high:.4g}"
        why = "; ".join(f"{reason.words} ({reason.rarity})" for reason in self.reasons)
        why = why or "nothing is known of it yet"
        return f"{self.quantity} {self.observed:.4g}{expected}: {why}"


def explain(quantity: Quantity, observed: float, scores: Scores, at: int) -> Explanation:
    """Return why the value at place ``at`` of ``scores`` is strange; ``observed`` is in the quantity's own unit.

    The loudest view of each family speaks for it.
    """
    low, high = (float(edge) for edge in from_scale(quantity, np.array([scores.low[at], scores.high[at]])))
    is_known = bool(np.isfinite(low) and np.isfinite(high))
    reasons: dict[str, SurpriseReason] = {}
    for place in np.argsort(-scores.surprises[at], kind="stable").tolist():
        view, surprise = VIEWS[place], float(scores.surprises[at, place])
        if surprise > 0 and len(reasons) < MAX_REASONS:
            reasons.setdefault(view.family, SurpriseReason(view.name, view.words, 10.0**surprise))
    return Explanation(
        quantity,
        observed,
        low if is_known else None,
        high if is_known else None,
        tuple(reasons.values()),
        int(scores.since_us[at]),
        float(scores.score[at]),
    )
