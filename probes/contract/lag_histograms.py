"""Lag histogram: how many lags lie in each bucket of one fixed grid, so that histograms add up in any order.

The grid is log-linear, as that of HdrHistogram: 128 buckets between a power of two and the next one. Lags from -256 to
255 µs have a bucket each; the middle of any other bucket is off by at most 1/256 of each lag in it. Buckets are
numbered from -7,296 to 7,295, by whole numbers alone, so that all languages find the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract.varints import VarintError, decode_varints, decode_zigzag, encode_varints, encode_zigzag

MAX_LAGS: Final = 2**42 - 1
"""Lags of a histogram at most: those of all minutes of a day have 53 bits. A sum of histograms may have more."""
MAX_BUCKETS: Final = 14_592
"""Buckets of the grid."""

_FORM: Final = 1
_HEAD_NUMBERS: Final = 4
_BITS: Final = 7
_HALF: Final = 32
_TOO_MANY: Final = MAX_LAGS + 1
"""Count of a bucket in sums that is never exceeded, and tells that there are too many lags."""

Int64s = NDArray[np.int64]
PackedLags = bytes
"""Histogram of lags as the wire has it, by :func:`parse_histogram`; empty where no lag is known."""


class HistogramError(ValueError):
    """Bytes that are no lag histogram, or lags of which there is none."""


class LagHistogram(NamedTuple):
    """Least and greatest lag, µs, and the buckets between, ascending, with the number of lags in each, at least one.

    ``buckets`` and ``counts`` have the shape (buckets,).
    """

    min_us: int
    max_us: int
    buckets: Int64s
    counts: Int64s

    @property
    def total(self) -> int:
        """The number of lags."""
        return int(self.counts.sum())

    @property
    def lags_us(self) -> Int64s:
        """The lag that stands for those of each bucket: its middle, within the least and the greatest lag."""
        return np.clip(find_middles(self.buckets), self.min_us, self.max_us)


def find_buckets(lags_us: Int64s) -> Int64s:
    """Return the bucket of each lag."""
    sizes = np.where(lags_us < 0, ~lags_us, lags_us)
    shifts = np.maximum(_bit_lengths(sizes) - (_BITS + 1), 0)
    found = (shifts << _BITS) + (sizes >> shifts)
    return np.where(lags_us < 0, ~found, found)


def find_middles(buckets: Int64s) -> Int64s:
    """Return the middle of each bucket, µs, the lower one of two."""
    numbers = np.where(buckets < 0, ~buckets, buckets)
    shifts = np.maximum((numbers >> _BITS) - 1, 0)
    middles = (numbers - (shifts << _BITS) << shifts) + ((1 << shifts) - 1 >> 1)
    return np.asarray(np.where(buckets < 0, ~middles, middles))


def count_lags(lags_us: Int64s, counts: Int64s | None = None) -> PackedLags:
    """Return the histogram of lags, shape (lags,), of each as many as ``counts`` says, or one; of none no bytes.

    Raises:
        HistogramError: there are more lags than a histogram has.
    """
    if counts is not None:
        lags_us, counts = lags_us[counts > 0], counts[counts > 0]
    total = len(lags_us) if counts is None else sum(counts.tolist())
    if total > MAX_LAGS:
        raise HistogramError(f"a lag histogram has at most 2^42 - 1 lags, got {total}")
    if not len(lags_us):
        return b""
    weights = np.ones(len(lags_us), np.int64) if counts is None else counts
    return _pack(_add_buckets(int(lags_us.min()), int(lags_us.max()), find_buckets(lags_us), weights))


def add_histograms(histograms: Sequence[PackedLags]) -> PackedLags:
    """Return the histogram of all lags of some, in whatever order and groups they are added.

    Raises:
        HistogramError: the bytes of one are none.
    """
    parts = [one for one in histograms if one]
    if len(parts) <= 1:
        return parts[0] if parts else b""
    return _pack(join_histograms([parse_histogram(one) for one in parts]))


def join_histograms(parts: Sequence[LagHistogram]) -> LagHistogram:
    """Return the histogram of all lags of some, at least one."""
    low, high = min(one.min_us for one in parts), max(one.max_us for one in parts)
    buckets, counts = (np.concatenate([one[column] for one in parts]) for column in (2, 3))
    return _add_buckets(low, high, buckets, counts)


def parse_histogram(data: PackedLags) -> LagHistogram:
    """Return the histogram of its bytes.

    They are LEB128 numbers: 1; the least and the greatest lag, zigzag; the number of buckets; the step from each bucket
    to the next; the number of lags in each. The first bucket is that of the least lag.

    Raises:
        HistogramError: they are none, or a number is out of its bounds.
    """
    try:
        numbers = decode_varints(data)
    except VarintError as error:
        raise HistogramError(f"a lag histogram is made of LEB128 numbers: {error}") from None
    if not numbers.size or int(numbers[0]) != _FORM:
        got = int(numbers[0]) if numbers.size else "nothing"
        raise HistogramError(f"a lag histogram begins with the number of its form, {_FORM}, got {got}")
    size = int(numbers[3]) if numbers.size >= _HEAD_NUMBERS else 0
    if not 1 <= size <= MAX_BUCKETS or numbers.size != _HEAD_NUMBERS + 2 * size - 1:
        told = f"a lag histogram has 1 to {MAX_BUCKETS} buckets, and 3 numbers and two a bucket"
        raise HistogramError(f"{told}, got {size} buckets and {numbers.size} numbers")
    steps, counts = numbers[_HEAD_NUMBERS : _HEAD_NUMBERS + size - 1], numbers[-size:]
    if steps.size and not 1 <= int(steps.min()) <= int(steps.max()) <= MAX_BUCKETS:
        got = f"{int(steps.min())} to {int(steps.max())}"
        raise HistogramError(f"buckets of a lag histogram ascend by 1 to {MAX_BUCKETS}, got steps of {got}")
    if not 1 <= int(counts.min()) <= int(counts.max()) <= _TOO_MANY:
        got = f"{int(counts.min())} to {int(counts.max())}"
        raise HistogramError(f"a bucket of a lag histogram has 1 to 2^42 lags, got {got}")
    low, high = decode_zigzag(numbers[1]), decode_zigzag(numbers[2])
    first, last = find_buckets(np.array([low, high], np.int64)).tolist()
    buckets = first + np.concatenate((np.zeros(1, np.int64), np.cumsum(steps.astype(np.int64))))
    if low > high or int(buckets[-1]) != last:
        told = f"the last bucket of a lag histogram is that of its greatest lag, {last} from {low} to {high} µs"
        raise HistogramError(f"{told}, got {int(buckets[-1])}")
    return LagHistogram(low, high, buckets, counts.astype(np.int64))


def check_histogram(data: PackedLags, count: int) -> None:
    """Check a histogram of ``count`` messages, of each of which it may have a lag.

    Raises:
        HistogramError: it is none, or has more lags.
    """
    if (found := parse_histogram(data).total) > min(count, MAX_LAGS):
        raise HistogramError(
            f"a lag histogram of {count} messages has at most {min(count, MAX_LAGS)} lags, got {found}"
        )


def _pack(histogram: LagHistogram) -> PackedLags:
    head = [_FORM, encode_zigzag(histogram.min_us), encode_zigzag(histogram.max_us), len(histogram.buckets)]
    numbers = (np.array(head, np.uint64), np.diff(histogram.buckets), histogram.counts)
    return encode_varints(np.concatenate([part.astype(np.uint64) for part in numbers]))


def _add_buckets(low: int, high: int, buckets: Int64s, counts: Int64s) -> LagHistogram:
    """Return the histogram of buckets in any order, of which some may be the same."""
    first = int(buckets.min())
    # Floats are exact up to far more than a bucket has at most.
    sums = np.bincount(buckets - first, counts)
    kept = np.flatnonzero(sums)
    return LagHistogram(low, high, first + kept, np.minimum(sums[kept], _TOO_MANY).astype(np.int64))


def _bit_lengths(sizes: Int64s) -> Int64s:
    """Return the number of bits of each, which is 0 or more; of halves, since a float holds 53 bits."""
    upper = sizes >> _HALF
    lengths = np.frexp(np.where(upper > 0, upper, sizes).astype(np.float64))[1]
    return np.where(upper > 0, lengths + _HALF, lengths).astype(np.int64)
