"""Quantities of the series, and the scale on which each is judged.

Counts and lags spread over orders of magnitude and are judged by their logarithm; a ratio by its log odds, with half a
message added on both sides, so that 0 of 10 and 0 of 10,000 differ. What a series is shown in stays as it is.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PSEUDO_COUNT: Final = 0.5


class Quantity(StrEnum):
    """Quantity of a series; a series is one quantity of one node."""

    LAG_IN_P95_US = "lag_in_p95_us"
    LAG_OUT_P95_US = "lag_out_p95_us"
    INSIDE_P95_US = "inside_p95_us"
    LOSS_RATIO = "loss_ratio"
    MESSAGES = "messages"
    DUPLICATES = "duplicates"
    VALUE = "value"
    """Any number of somebody else's, judged as it is."""


_BY_LOGARITHM: Final = frozenset(
    {
        Quantity.LAG_IN_P95_US,
        Quantity.LAG_OUT_P95_US,
        Quantity.INSIDE_P95_US,
        Quantity.MESSAGES,
        Quantity.DUPLICATES,
    }
)


def to_scale(quantity: Quantity, values: Floats, totals: Floats | None = None) -> Floats:
    """Return the values as they are judged; NaN, a gap, stays one.

    A negative lag, which a skewed clock makes, is judged by the logarithm of its size, with its sign. ``totals`` are
    the messages that a ratio is of; without them, or with none, a ratio is a gap.
    """
    if quantity is Quantity.VALUE:
        return values
    if quantity in _BY_LOGARITHM:
        return np.asarray(np.copysign(np.log1p(np.abs(values)), values))
    if totals is None:
        return np.full(values.shape, np.nan)
    bad = values * totals
    odds = (bad + PSEUDO_COUNT) / (totals - bad + PSEUDO_COUNT)
    return np.asarray(np.where(totals > 0, np.log(np.maximum(odds, np.finfo(np.float64).tiny)), np.nan))


def from_scale(quantity: Quantity, scaled: Floats) -> Floats:
    """Return what :func:`to_scale` was given, of a ratio without the pseudo counts."""
    if quantity is Quantity.VALUE:
        return scaled
    if quantity in _BY_LOGARITHM:
        return np.asarray(np.copysign(np.expm1(np.abs(scaled)), scaled))
    return np.asarray(1 / (1 + np.exp(-scaled)))
