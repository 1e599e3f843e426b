"""Many stored digests merged at once: what :func:`monitor.kernel.tdigest.merge` makes of them, read in one sweep.

A page that tells percentiles of a range merges tens of thousands of digests; one at a time, most of that time would go
into the beginning and the end of each. The law: the same to the byte as reading each and merging them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.centroids import Bools, Digest, Floats, Ints
from hopwatch.monitor.kernel.tdigest_forms import MAX_COUNT, from_bytes

_HEAD_BYTES: Final = 4
_VERSION: Final = 1
_PLAIN_FORMS: Final = 1
"""The forms up to this one have whole means."""
_SHORT_BYTES: Final = 9
"""Numbers of up to so many bytes fit into 63 bits, whatever their bits are."""
_BATCH_BYTES: Final = 100_000
_MORE: Final = np.uint8(0x80)
_LOW: Final = np.uint8(0x7F)
_ONE: Final = np.uint64(1)

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


class _DigestColumns(NamedTuple):
    """Digests laid end to end: centroids, of shape (centroids of all,), and of each digest its size and bounds."""

    means: Floats
    weights: Ints
    pure: Bools
    sizes: Ints
    low: Ints
    high: Ints


def merge_stored(groups: Sequence[Sequence[bytes]]) -> list[Digest]:
    """Return the merge of each group of stored digests.

    Raises:
        DigestError: the bytes of one of them are those of no digest.
    """
    return [digest for some in _split_batches(groups) for digest in _merge_batch(some)]


def _split_batches(groups: Sequence[Sequence[bytes]]) -> Iterator[list[Sequence[bytes]]]:
    """Yield groups in turn, so many that what is made of them on the way fits into a processor's cache."""
    some: list[Sequence[bytes]] = []
    size = 0
    for group in groups:
        some.append(group)
        size += sum(map(len, group))
        if size > _BATCH_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _merge_batch(groups: Sequence[Sequence[bytes]]) -> list[Digest]:
    stored = list(chain.from_iterable(groups))
    laid = _parse_digests(stored) if stored else None
    if laid is None:
        return [tdigest.merge([from_bytes(data) for data in group]) for group in groups]
    ends = np.cumsum(laid.sizes)
    upto = np.concatenate(([0], np.cumsum([len(group) for group in groups]))).tolist()
    return [_merge_slice(laid, ends, first, last) for first, last in pairwise(upto)]


def _merge_slice(laid: _DigestColumns, ends: Places, first: int, last: int) -> Digest:
    """Return the merge of the digests from the first up to the last, which is not among them."""
    filled = np.flatnonzero(laid.sizes[first:last]) + first
    if not filled.size:
        return tdigest.EMPTY
    inside = slice(int(ends[first] - laid.sizes[first]), int(ends[last - 1]))
    low, high = int(laid.low[filled].min()), int(laid.high[filled].max())
    found = Digest(laid.means[inside], laid.weights[inside], laid.pure[inside], low, high)
    return found if filled.size == 1 else tdigest.join_centroids(found)


def _parse_digests(stored: Sequence[bytes]) -> _DigestColumns | None:
    """Return stored digests laid end to end; none where one of them is not of the usual form, or no digest at all."""
    lengths = np.array([len(data) for data in stored], np.int64)
    if lengths.min() < _HEAD_BYTES:
        return None
    heads = np.frombuffer(b"".join([data[:_HEAD_BYTES] for data in stored]), np.uint8).reshape(-1, _HEAD_BYTES)
    form, size = heads[:, 1], heads[:, 2].astype(np.int64) | heads[:, 3].astype(np.int64) << 8
    if (heads[:, 0] != _VERSION).any() or (form > _PLAIN_FORMS).any() or not size.any():
        return None
    has_weights = form == 0
    counts = np.where(size > 0, 2 + size + np.where(has_weights, size, 0), 0)
    body = np.frombuffer(b"".join([data[_HEAD_BYTES:] for data in stored]), np.uint8)
    numbers = _parse_numbers(body, np.cumsum(lengths - _HEAD_BYTES), np.cumsum(counts))
    return None if numbers is None else _check_columns(_parse_columns(numbers, size, counts, has_weights))


def _parse_numbers(body: Bytes, upto_bytes: Places, upto_numbers: Places) -> Numbers | None:
    """Return the LEB128 numbers; none unless so many of them end where each digest does, and all are short."""
    ends = np.flatnonzero(body < _MORE)
    if ends.size != upto_numbers[-1] or (ends.size and ends[-1] != body.size - 1):
        return None
    # Where a digest ends, as many numbers have ended as it and those before it are made of.
    closing = np.concatenate(([0], ends + 1))[upto_numbers]
    sizes = np.diff(ends, prepend=-1)
    if (closing != upto_bytes).any() or sizes.max() > _SHORT_BYTES:
        return None
    first = ends - sizes + 1
    numbers = (body[first] & _LOW).astype(np.uint64)
    for place in range(1, int(sizes.max())):
        longer = np.flatnonzero(sizes > place)
        numbers[longer] |= (body[first[longer] + place] & _LOW).astype(np.uint64) << np.uint64(7 * place)
    return numbers


def _parse_columns(numbers: Numbers, size: Ints, counts: Ints, has_weights: Bools) -> _DigestColumns:
    """Return what the numbers of digests say; bounds of one without centroids are 0."""
    filled = size > 0
    offsets = (np.cumsum(counts) - counts)[filled]
    sizes = size[filled]
    low, high = np.zeros(size.size, np.int64), np.zeros(size.size, np.int64)
    low[filled], high[filled] = _unzigzag(numbers[offsets]), _unzigzag(numbers[offsets + 1])
    begins = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) + np.repeat(offsets + 2 - begins, sizes)
    steps = numbers[places]
    # Sums of steps wrap round at 64 bits, and so does what is taken off again.
    steps[begins] = (low[filled] + _unzigzag(numbers[offsets + 2])).view(np.uint64)
    run = np.cumsum(steps)
    means = (run - np.repeat(run[begins] - steps[begins], sizes)).view(np.int64).astype(np.float64)
    is_written = np.repeat(has_weights[filled], sizes)
    packed = np.zeros(places.size, np.uint64)
    packed[is_written] = numbers[(places + np.repeat(sizes, sizes))[is_written]]
    weights = (packed >> _ONE).astype(np.int64) + 1
    return _DigestColumns(means, weights, packed & _ONE == 0, size, low, high)


def _unzigzag(coded: Numbers) -> Ints:
    found: Ints = (coded >> _ONE).view(np.int64) ^ -(coded & _ONE).view(np.int64)
    return found


def _check_columns(laid: _DigestColumns) -> _DigestColumns | None:
    """Return digests that keep what every digest keeps; none where one does not."""
    filled = laid.sizes > 0
    last = np.cumsum(laid.sizes)[filled] - 1
    first = last - laid.sizes[filled] + 1
    falls = laid.means[1:] < laid.means[:-1]
    falls[first[1:] - 1] = False
    low, high = laid.low[filled], laid.high[filled]
    is_inside = (low <= laid.means[first]) & (laid.means[last] <= high)
    is_countable = np.add.reduceat(laid.weights, first, dtype=np.float64) < MAX_COUNT
    return laid if is_inside.all() and is_countable.all() and not falls.any() else None
