"""LEB128 numbers in arrays: seven bits a byte, the lowest first, the top bit set on all but the last byte."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_BITS: Final = np.uint64(7)
_MORE: Final = np.uint8(0x80)
_MAX_BYTES: Final = 10
_SHIFTS: Final = np.arange(_MAX_BYTES, dtype=np.uint64) * _BITS

Numbers = NDArray[np.uint64]


class VarintError(ValueError):
    """Bytes that are no LEB128 numbers of at most 64 bits."""


def encode_varints(numbers: Numbers) -> bytes:
    """Return numbers, shape (numbers,), at least one, as LEB128."""
    width = max(1, -(-int(numbers.max()).bit_length() // 7))
    shifted = numbers[:, np.newaxis] >> _SHIFTS[:width]
    is_last = shifted >> _BITS == 0
    coded = shifted.astype(np.uint8) & ~_MORE | np.where(is_last, np.uint8(0), _MORE)
    is_used = np.ones_like(is_last)
    is_used[:, 1:] = shifted[:, 1:] != 0
    return bytes(coded[is_used].tobytes())


def decode_varints(data: bytes) -> Numbers:
    """Return the LEB128 numbers that ``data`` is made of; shape (numbers,).

    Raises:
        VarintError: the last one breaks off, or one of them has more than 64 bits.
    """
    coded = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(coded < _MORE)
    if not coded.size:
        return np.empty(0, np.uint64)
    if not ends.size or ends[-1] != coded.size - 1:
        raise VarintError("it breaks off within a number")
    sizes = np.diff(ends, prepend=-1)
    is_longest = sizes == _MAX_BYTES
    if sizes.max() > _MAX_BYTES or (coded[ends[is_longest]] > 1).any():
        raise VarintError("one of its numbers has more than 64 bits")
    starts = ends - sizes + 1
    place = np.arange(coded.size) - np.repeat(starts, sizes)
    return np.bitwise_or.reduceat((coded & ~_MORE).astype(np.uint64) << _SHIFTS[place], starts)


def encode_zigzag(number: int) -> int:
    """Return a signed number as one of 0 or more, small where it is near 0."""
    return 2 * number if number >= 0 else -2 * number - 1


def decode_zigzag(coded: np.uint64) -> int:
    """Return the signed number that :func:`encode_zigzag` was given."""
    number = int(coded)
    return number // 2 if number % 2 == 0 else -(number + 1) // 2
