"""Lags of a digest as the exponential histogram of OpenTelemetry.

Bucket ``i`` of scale ``s`` holds the values in ``(base**i, base**(i + 1)]``, ``base = 2**(2**-s)``; negative values
have buckets of their own, by their size. A centroid counts in the bucket of its mean: values that a digest holds
exactly are in their own buckets. Source: the data model of metrics of OpenTelemetry, ExponentialHistogram.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint

from hopwatch.monitor.kernel.centroids import Digest

MAX_BUCKETS: Final = 160
"""Buckets of each sign, at most: the default of SDKs."""
MAX_SCALE: Final = 20
MIN_SCALE: Final = -10
US: Final = 1e6
"""µs of a second."""


def build_point(digest: Digest) -> ExponentialHistogramDataPoint:
    """Build the point of a digest that is not empty, in seconds; its times and attributes are not set.

    Negative lags leave out the sum, as a sum with them cannot be told from one that went back.
    """
    values_s, weights = digest.means / US, digest.weights
    sizes_s = np.abs(values_s[values_s != 0])
    scale = _find_scale(sizes_s)
    point = ExponentialHistogramDataPoint(
        count=digest.count,
        scale=scale,
        zero_count=int(weights[values_s == 0].sum()),
        min=digest.min / US,
        max=digest.max / US,
    )
    if digest.min >= 0:
        point.sum = float((values_s * weights).sum())
    for buckets, chosen in ((point.positive, values_s > 0), (point.negative, values_s < 0)):
        if chosen.any():
            places = _find_buckets(np.abs(values_s[chosen]), scale)
            first = int(places.min())
            buckets.offset = first
            buckets.bucket_counts.extend(np.bincount(places - first, weights[chosen]).astype(np.int64).tolist())
    return point


def _find_scale(sizes_s: NDArray[np.float64]) -> int:
    """Return the greatest scale at which all sizes lie in MAX_BUCKETS buckets."""
    if not sizes_s.size:
        return MAX_SCALE
    least_s, most_s = float(sizes_s.min()), float(sizes_s.max())
    ends = np.array([least_s, most_s])
    for scale in range(MAX_SCALE, MIN_SCALE, -1):
        first, last = _find_buckets(ends, scale)
        if last - first < MAX_BUCKETS:
            return scale
    return MIN_SCALE


def _find_buckets(sizes_s: NDArray[np.float64], scale: int) -> NDArray[np.int64]:
    return np.ceil(np.log2(sizes_s) * 2.0**scale).astype(np.int64) - 1
