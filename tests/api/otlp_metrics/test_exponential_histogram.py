"""Lags of a digest as an exponential histogram."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint

from hopwatch.api.otlp_metrics.exponential_histogram import MAX_BUCKETS, MAX_SCALE, US, build_point
from hopwatch.monitor.kernel import tdigest

LAGS = st.lists(st.integers(-(10**12), 10**12) | st.integers(-100, 100), min_size=1, max_size=200)


def build(*lags_us: int) -> ExponentialHistogramDataPoint:
    """Return the point of some lags."""
    return build_point(tdigest.build(np.array(lags_us, np.int64)))


def count_between(point: ExponentialHistogramDataPoint, least_s: float, most_s: float) -> int:
    """Return how many values the buckets have that lie wholly between two sizes of positive values."""
    base = 2.0 ** (2.0**-point.scale)
    starts = range(point.positive.offset, point.positive.offset + len(point.positive.bucket_counts))
    return sum(
        count
        for start, count in zip(starts, point.positive.bucket_counts, strict=True)
        if base**start >= least_s * (1 - 1e-9) and base ** (start + 1) <= most_s * (1 + 1e-9)
    )


@given(LAGS)
def test_no_value_is_lost(lags_us: list[int]) -> None:
    """Counts of all buckets and of zero are those of the values; bounds are exact, and buckets are few."""
    point = build(*lags_us)
    signs = sum(point.positive.bucket_counts), sum(point.negative.bucket_counts), point.zero_count
    assert signs == (sum(one > 0 for one in lags_us), sum(one < 0 for one in lags_us), lags_us.count(0))
    assert point.count == len(lags_us)
    assert (point.min, point.max) == (min(lags_us) / US, max(lags_us) / US)
    assert max(len(point.positive.bucket_counts), len(point.negative.bucket_counts)) <= MAX_BUCKETS


@given(LAGS)
def test_each_value_is_in_its_bucket(lags_us: list[int]) -> None:
    """Above the lower end of its bucket, and no greater than the upper one."""
    point = build(*lags_us)
    base = 2.0 ** (2.0**-point.scale)
    for buckets, sign in ((point.positive, 1), (point.negative, -1)):
        sizes_s = [sign * one / US for one in lags_us if sign * one > 0]
        for place, count in enumerate(buckets.bucket_counts):
            lower_s, upper_s = base ** (buckets.offset + place), base ** (buckets.offset + place + 1)
            near = sum(lower_s * (1 - 1e-9) < size <= upper_s * (1 + 1e-9) for size in sizes_s)
            sure = sum(lower_s * (1 + 1e-9) < size <= upper_s * (1 - 1e-9) for size in sizes_s)
            assert sure <= count <= near


def test_powers_of_the_base_are_upper_ends() -> None:
    """As the data model has it: of scale 0 a value of 2 is in the bucket from 1 to 2."""
    point = build(1_000_000, 2_000_000, 4_000_000, 10**18)
    assert point.scale < MAX_SCALE
    assert count_between(point, 0.5, 1) == 1
    assert count_between(point, 1, 4) == 2


@pytest.mark.parametrize(("lags_us", "has_sum"), [((0, 1_500_000), True), ((-1, 1_500_000), False)])
def test_a_sum_is_told_where_no_lag_is_negative(lags_us: tuple[int, ...], has_sum: bool) -> None:  # noqa: FBT001 - of a case
    """With a negative value a reader could not tell it from one that went back."""
    point = build(*lags_us)
    assert point.HasField("sum") == has_sum
    assert not has_sum or point.sum == 1.5


def test_values_that_are_alike_have_the_finest_buckets() -> None:
    """One value has one bucket; none but zero has none."""
    assert (build(7, 7).scale, list(build(7, 7).positive.bucket_counts)) == (MAX_SCALE, [2])
    assert (build(0).zero_count, len(build(0).positive.bucket_counts)) == (1, 0)
