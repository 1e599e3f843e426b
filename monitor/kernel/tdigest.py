"""Lag percentiles: a t-digest built in bulk from one array, the same to the byte for the same values, and mergeable.

The error is in rank: a value x is right for q when q lies in [P(X < x), P(X <= x)], and else off by the distance.
Measured over the 26 distributions of ``tests/support/distributions.py`` and over random mixtures of peaks, ties and
tails:

=========================================  =======  =======  =======  ============
worst error                                p50      p95      p99      any other q
=========================================  =======  =======  =======  ============
up to 256 different values                 0        0        0        0
built, 257 to 1,000,000 values             0        0        0        1.1 %
merged from 2 to 64 parts (29,000 merges)  0.73 %   0.16 %   0.06 %   1.5 %
promised of all                            1 %      0.2 %    0.2 %    1.5 %
=========================================  =======  =======  =======  ============

The zeros hold by construction. Count, min and max are always exact. Merges were at once, in pairs and one after the
other; of parts at random, sorted and drifting; of equal sizes and of sizes that halve.

Four things make it so. The boundaries are those of the scale function k1(q) = delta / 2 pi * asin(2q - 1) (Dunning and
Ertl, Computing Extremely Accurate Quantiles Using t-Digests, 2019). The values at the reported ranks stand alone. So do
the two sides of a gap in a cluster. And a centroid knows whether its values are all the same, so that it is a step and
no slope.

A digest has 256 centroids or fewer for as many different values, up to 480 for 1,000 and 260 for 500,000; stored, about
4 bytes each, 10 when the values are spread over all of 64 bits. How it fails: a rank that is not reported, and any rank
after a merge, may be off by about the weight of one cluster, at most pi / 400 = 0.8 % of all at the median when built
and twice that when merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopwatch.monitor.kernel.centroids import EMPTY, Bools, Digest, DigestError, Floats, Ints, group_equal, run_lengths
from hopwatch.monitor.kernel.tdigest_forms import from_bytes, from_dict, to_bytes, to_dict

__all__ = [
    "DELTA_ABOVE",
    "DELTA_BELOW",
    "EMPTY",
    "EXACT_UP_TO",
    "Digest",
    "DigestError",
    "build",
    "cdf",
    "from_bytes",
    "from_dict",
    "join_centroids",
    "merge",
    "quantile",
    "quantiles",
    "to_bytes",
    "to_dict",
]

Places = NDArray[np.intp]
Offsets = NDArray[np.unsignedinteger[Any]]

DELTA_BELOW, DELTA_ABOVE = 400, 600
EXACT_UP_TO: Final = 256
# min, p50, p95, p99, max: the value at each of these ranks is a centroid by itself.
_REPORTED_PERMILLE: Final = (0, 500, 950, 990, 1000)
# The boundaries: q of every whole k, that is sin(2 pi k / delta) = 2q - 1, with one delta on each side of the median.
# Rounded, so that the last bit of a platform's sine cannot move one.
_TURNS: Final = np.concatenate(
    (np.arange(1 - DELTA_BELOW // 4, 0) / DELTA_BELOW, np.arange(DELTA_ABOVE // 4) / DELTA_ABOVE)
)
_GRID: Final = np.round((1 + np.sin(2 * np.pi * _TURNS)) / 2, 12)
_RADIX_BYTES: Final = 2
_HALF: Final = np.uint64(32)


def build(values: NDArray[np.int64]) -> Digest:
    """Return the digest of ``values``, int64 of shape (n,), n < 2**31, in any order.

    The work is done on offsets from the least value, in the narrowest unsigned type that holds them, because a narrow
    sort is the faster one; all sums are of integers, so that nothing is rounded before the mean itself.

    Raises:
        DigestError: ``values`` is no one-dimensional array of int64.
    """
    if values.dtype != np.int64 or values.ndim != 1:
        raise DigestError(
            f"A digest is built from an int64 array of shape (n,); got {values.dtype} of shape {values.shape}."
        )
    if not values.size:
        return EMPTY
    low, high = int(values.min()), int(values.max())
    base = np.uint64(low % 2**64)
    offsets: Offsets = (values.view(np.uint64) - base).astype(np.min_scalar_type(high - low), copy=False)
    # numpy's stable sort is a radix sort for narrow types, and slow for wide ones.
    offsets.sort(kind="stable" if offsets.itemsize <= _RADIX_BYTES else "quicksort")
    starts = _starts(offsets)
    weights = run_lengths(starts, offsets.size)
    means = (_whole_means(offsets, starts, weights) + base).view(np.int64).astype(np.float64)
    return group_equal(Digest(means, weights, offsets[starts] == offsets[starts + weights - 1], low, high))


def merge(digests: Sequence[Digest]) -> Digest:
    """Return the digest of all the values in ``digests``: the same to the byte in whatever order these are given.

    Up to ``EXACT_UP_TO`` different centroids are kept as they are; more are joined within the boundaries of k1.
    """
    parts = [digest for digest in digests if digest.weights.size]
    if len(parts) <= 1:
        return parts[0] if parts else EMPTY
    means, weights = np.concatenate([part.means for part in parts]), np.concatenate([part.weights for part in parts])
    pure = np.concatenate([part.pure for part in parts])
    low, high = min(part.min for part in parts), max(part.max for part in parts)
    return join_centroids(Digest(means, weights, pure, low, high))


def join_centroids(laid: Digest) -> Digest:
    """Return the digest of the centroids of several, laid end to end in any order."""
    order = np.lexsort((laid.pure, laid.means))
    together = group_equal(Digest(laid.means[order], laid.weights[order], laid.pure[order], laid.min, laid.max))
    return together if together.means.size <= EXACT_UP_TO else _join_neighbours(together)


def quantile(digest: Digest, q: float) -> float:
    """Return the value at rank ``q``, from 0 to 1, in µs; see :func:`quantiles`."""
    return float(quantiles(digest, q))


def quantiles(digest: Digest, qs: ArrayLike) -> Floats:
    """Return the values at the ranks ``qs``, each from 0 to 1; in µs, in the shape of ``qs``.

    A pure centroid answers for each of its ranks, so that what it says is the inverse of the distribution function:
    the smallest value whose rank is at least q. Beside and between other centroids the answer is interpolated linearly
    from middle to middle.

    Raises:
        DigestError: the digest is empty, or a rank is outside 0 to 1.
    """
    wanted = np.asarray(qs, np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise DigestError(f"A quantile is asked for at a rank from 0 to 1; got {qs!r}.")
    ranks, values = _knots(digest)
    right = np.minimum(np.searchsorted(ranks, wanted, side="left"), ranks.size - 1)
    return _between(ranks, values, right, wanted)


def cdf(digest: Digest, x: float) -> float:
    """Return the share of values that are at most ``x`` µs, from 0 to 1: the inverse of :func:`quantile`.

    Raises:
        DigestError: the digest is empty, or ``x`` is not a number.
    """
    if math.isnan(x):
        raise DigestError(f"The share of values up to x is asked for with x in microseconds; got {x}.")
    ranks, values = _knots(digest)
    right = np.searchsorted(values, x, side="right")
    if right in {0, values.size}:
        return float(right > 0)
    return float(_between(values, ranks, right, np.float64(x)))


def _starts(offsets: Offsets) -> Places:
    """Return where the clusters of sorted ``offsets`` start: one a distinct value while these are few."""
    count = offsets.size
    gaps = offsets[1:] - offsets[:-1]
    is_start = np.zeros(count + 1, np.bool_)
    is_start[0] = True
    if np.count_nonzero(gaps) < EXACT_UP_TO:
        is_start[1:count] = gaps != 0
    else:
        is_start[np.rint(_GRID * count).astype(np.intp)] = True
        reported = _reported_ranks(count)
        is_start[reported - 1] = is_start[reported] = True
        _cut_at_gaps(is_start, offsets, gaps)
    return np.flatnonzero(is_start[:count])


def _reported_ranks(count: int) -> Places:
    """Return the ranks, from 1, of the values that the reported percentiles are: the least r with r / count >= q."""
    return np.array([max(1, -(-count * permille // 1000)) for permille in _REPORTED_PERMILLE])


def _cut_at_gaps(is_start: Bools, ordered: NDArray[Any], gaps: NDArray[Any]) -> None:
    """Mark a start behind every gap that is wider than a third of what its cluster spans.

    A mean says little of a cluster with a hole in it: it may lie where no value is, and there an interpolated rank is
    off by the whole cluster.
    """
    starts = np.flatnonzero(is_start[:-1])
    counts = run_lengths(starts, ordered.size)
    third = ((ordered[starts + counts - 1] - ordered[starts]) / 3).astype(ordered.dtype)
    is_start[1:-1] |= gaps > np.repeat(third, counts)[:-1]


def _whole_means(offsets: Offsets, starts: Places, weights: Ints) -> NDArray[np.uint64]:
    """Return the mean of each cluster to the nearest whole number, exactly.

    The rounding costs no rank: values are whole, so none lies between a mean and the whole numbers beside it.
    """
    counts = weights.astype(np.uint64)
    if int(offsets[-1]) * int(weights.max()) < 2**64:
        return (np.add.reduceat(offsets, starts, dtype=np.uint64) + counts // 2) // counts
    # A sum might not fit into 64 bits: the upper and the lower halves are summed apart.
    upper = np.add.reduceat(offsets >> _HALF, starts)
    lower = np.add.reduceat(offsets & np.uint64(2**32 - 1), starts)
    return ((upper // counts) << _HALF) + (((upper % counts) << _HALF) + lower + counts // 2) // counts


def _join_neighbours(digest: Digest) -> Digest:
    """Return ``digest`` with its centroids joined where the middles of their ranks fall between the same boundaries."""
    means, weights = digest.means, digest.weights
    upto = np.cumsum(weights)
    count = int(upto[-1])
    slot = np.searchsorted(_GRID * count, upto - weights / 2)
    is_start = np.ones(means.size + 1, np.bool_)
    is_start[1:-1] = slot[1:] != slot[:-1]
    reported = np.searchsorted(upto, _reported_ranks(count))
    is_start[reported] = is_start[reported + 1] = True
    _cut_at_gaps(is_start, means, means[1:] - means[:-1])
    starts = np.flatnonzero(is_start[:-1])
    merged = run_lengths(starts, means.size)
    first, last = means[starts], means[starts + merged - 1]
    heavier = np.add.reduceat(weights, starts)
    centres = first + np.add.reduceat((means - np.repeat(first, merged)) * weights, starts) / heavier
    if _are_whole(means):
        centres = np.rint(centres)
    pure: Bools = digest.pure[starts] & (merged == 1)
    return group_equal(Digest(np.clip(centres, first, last), heavier, pure, digest.min, digest.max))


def _are_whole(means: Floats) -> bool:
    return bool((np.rint(means) == means).all())


def _knots(digest: Digest) -> tuple[Floats, Floats]:
    """Return ranks and values of the polyline between them: two knots a centroid, both rising.

    A pure centroid is level from its first rank to its last; any other one has both knots in its middle.
    """
    if not digest.weights.size:
        raise DigestError("An empty digest has no quantiles and no ranks: look at its count first.")
    upto = np.cumsum(digest.weights)
    half = np.where(digest.pure, 0, digest.weights / 2)
    ranks = np.stack((upto - digest.weights + half, upto - half), axis=1).ravel() / upto[-1]
    return ranks, np.repeat(digest.means, 2)


def _between(xs: Floats, ys: Floats, right: NDArray[np.intp] | np.intp, wanted: Floats | np.float64) -> Floats:
    """Return y at ``wanted`` on the line from knot ``right - 1`` to knot ``right``, never beyond the latter."""
    left = np.maximum(right - 1, 0)
    span = xs[right] - xs[left]
    share = np.where(span > 0, (wanted - xs[left]) / np.where(span > 0, span, 1), 1)
    risen = np.minimum(ys[left] + (ys[right] - ys[left]) * share, ys[right])
    return np.asarray(np.where(share < 1, risen, ys[right]))
