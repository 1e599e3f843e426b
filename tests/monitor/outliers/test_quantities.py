"""Tests of the scales on which quantities are judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.outliers.quantities import Quantity, from_scale, to_scale

ON_LOGARITHMS = [one for one in Quantity if one not in {Quantity.LOSS_RATIO, Quantity.VALUE}]


@given(st.sampled_from(ON_LOGARITHMS), st.lists(st.floats(-1e12, 1e12)))
def test_a_scale_can_be_gone_back(quantity: Quantity, values: list[float]) -> None:
    """Counts and lags, negative ones too, come back as they were."""
    before = np.array(values)
    assert from_scale(quantity, to_scale(quantity, before)) == pytest.approx(before, rel=1e-9, abs=1e-9)


@given(st.sampled_from(Quantity), st.lists(st.floats(0, 1), min_size=2))
def test_a_scale_keeps_the_order(quantity: Quantity, values: list[float]) -> None:
    """A scale keeps the order of values, and equal values stay equal."""
    ordered = np.sort(np.array(values))
    assert (np.diff(to_scale(quantity, ordered, np.full(len(ordered), 100.0))) >= 0).all()


def test_a_ratio_of_many_says_more_than_one_of_few() -> None:
    """Nothing lost of ten is less of a promise than nothing lost of ten thousand; of none it is a gap."""
    scaled = to_scale(Quantity.LOSS_RATIO, np.array([0.0, 0.0, 0.0, 0.5]), np.array([10.0, 10_000.0, 0.0, 8.0]))
    assert scaled[1] < scaled[0] < scaled[3] == pytest.approx(0)
    assert np.isnan(scaled[2])
    assert np.isnan(to_scale(Quantity.LOSS_RATIO, np.array([0.5]))).all()
    assert from_scale(Quantity.LOSS_RATIO, scaled)[3] == pytest.approx(0.5)


@pytest.mark.parametrize("quantity", Quantity)
def test_a_gap_stays_one(quantity: Quantity) -> None:
    """Of every quantity."""
    assert np.isnan(to_scale(quantity, np.array([np.nan]), np.array([100.0]))).all()
