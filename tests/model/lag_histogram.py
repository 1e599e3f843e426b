"""Lag histograms, slowly: buckets one lag at a time, and the bytes of the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.model.lag import Quantiles

MOST_LAGS = 2**42 - 1


@dataclass(frozen=True, slots=True)
class LagHistogram:
    """Lags in buckets: the least and the greatest, µs, and how many are in each."""

    least_us: int
    greatest_us: int
    counts: dict[int, int]

    @property
    def total(self) -> int:
        """Give how many lags there are."""
        return sum(self.counts.values())


def bucket(lag_us: int) -> int:
    """Give the bucket that a lag is in: its first eight binary digits, and how many follow."""
    if lag_us < 0:
        return -1 - bucket(-1 - lag_us)
    following = max(0, lag_us.bit_length() - 8)
    return 128 * following + (lag_us >> following)


def middle(number: int) -> int:
    """Give the middle of the lags of a bucket, the lower one of two."""
    if number < 0:
        return -1 - middle(-1 - number)
    following = max(0, number // 128 - 1)
    first = (number - 128 * following) << following
    return (first + first + (1 << following) - 1) // 2


def histogram(lags_us: Sequence[int]) -> LagHistogram | None:
    """Give the histogram of lags, None without any."""
    return LagHistogram(min(lags_us), max(lags_us), dict(Counter(map(bucket, lags_us)))) if lags_us else None


def write(one: LagHistogram | None) -> bytes:
    """Give the bytes of a histogram."""
    if one is None:
        return b""
    buckets = sorted(one.counts)
    steps = [after - before for before, after in pairwise(buckets)]
    head = [1, _zigzag(one.least_us), _zigzag(one.greatest_us), len(buckets)]
    return b"".join(_leb128(number) for number in [*head, *steps, *(one.counts[number] for number in buckets)])


def read(data: bytes) -> LagHistogram | None:
    """Give the histogram that some bytes are; None of none, ValueError of what is no histogram."""
    if not data:
        return None
    form, least, greatest, size, *rest = _numbers(data)
    if form != 1 or size < 1 or len(rest) != 2 * size - 1:
        raise ValueError("there are a form, two lags, and two numbers a bucket but for one")
    steps, counts = rest[: size - 1], rest[size - 1 :]
    if not all(counts) or not all(steps) or max(counts) > 2**42:
        raise ValueError("buckets ascend, and are not empty")
    low, high = (number // 2 if number % 2 == 0 else -(number + 1) // 2 for number in (least, greatest))
    numbers = [bucket(low)]
    for step in steps:
        numbers.append(numbers[-1] + step)
    if low > high or numbers[-1] != bucket(high):
        raise ValueError("the last bucket is that of the greatest lag")
    return LagHistogram(low, high, dict(zip(numbers, counts, strict=True)))


def is_of(data: bytes, count: int) -> bool:
    """Say whether some bytes are the histogram of some or all of so many messages, or of none."""
    try:
        found = read(data)
    except ValueError:
        return False
    return found is None or found.total <= min(count, MOST_LAGS)


def quantiles_by_count(parts: Iterable[LagHistogram | None]) -> Quantiles | None:
    """Give Q of the middles of all lags, within the least and the greatest one; None of none, and of too many."""
    told = [part for part in parts if part is not None]
    total = sum(part.total for part in told)
    if not told or total > MOST_LAGS:
        return None
    counts: Counter[int] = Counter()
    for part in told:
        counts.update(part.counts)
    least, greatest = min(part.least_us for part in told), max(part.greatest_us for part in told)
    found = []
    for percent in (50, 95, 99):
        rank, upto = -(-percent * total // 100), 0
        for number in sorted(counts):
            upto += counts[number]
            if upto >= rank:
                found.append(max(least, min(middle(number), greatest)))
                break
    return {"count": total, "min": least, "p50": found[0], "p95": found[1], "p99": found[2], "max": greatest}


def _zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def _leb128(number: int) -> bytes:
    coded = bytearray()
    while number >= 128:
        coded.append(number % 128 + 128)
        number //= 128
    return bytes([*coded, number])


def _numbers(data: bytes) -> list[int]:
    """Give the LEB128 numbers, of at most 64 bits in at most ten bytes each."""
    numbers, value, size = [], 0, 0
    for byte in data:
        value, size = value + byte % 128 * 128**size, size + 1
        if byte < 128:
            if value >= 2**64 or size > 10:
                raise ValueError("a number has at most 64 bits")
            numbers.append(value)
            value, size = 0, 0
    if size:
        raise ValueError("it breaks off within a number")
    if len(numbers) < 4:
        raise ValueError("there are a form, two lags and a number of buckets")
    return numbers
