"""Fingerprint of the ids of messages: equal ones stand for the same messages, as SEMANTICS.md says how surely.

It is the XOR and the sum modulo 2^64 of a mix of each id, so that parts of a count join in any order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_SHIFTS: Final = np.array([30, 27, 31], np.uint64)
_WRAP: Final = 1 << 64
_SIGN: Final = 1 << 63


class Fingerprint(NamedTuple):
    """XOR and wrapping sum of the mixes of ids, each 0 to 2^64 - 1."""

    id_xor: int = 0
    id_sum: int = 0

    @classmethod
    def from_signed(cls, id_xor: int, id_sum: int) -> Fingerprint:
        """Return the fingerprint of both as the wire has them, signed."""
        return cls(id_xor % _WRAP, id_sum % _WRAP)

    @property
    def signed(self) -> tuple[int, int]:
        """XOR and sum as the wire has them."""
        return (self.id_xor ^ _SIGN) - _SIGN, (self.id_sum ^ _SIGN) - _SIGN

    def plus(self, other: Fingerprint) -> Fingerprint:
        """Return the fingerprint of both."""
        return Fingerprint(self.id_xor ^ other.id_xor, (self.id_sum + other.id_sum) % _WRAP)


def mix_ids(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the mix of each id, given as its two halves read little-endian, shape (n, 2); the mix has shape (n,).

    The mixer is the finalizer of splitmix64 (Steele, Lea, Flood 2014), on the one half and then on both: ids that
    differ in one half alone never have the same mix.
    """
    return _finalize(_finalize(ids[:, 0] + _STEP) ^ ids[:, 1])


def take_fingerprint(ids: NDArray[np.uint64]) -> Fingerprint:
    """Return the fingerprint of ids, shape (n, 2); one that stands twice counts twice."""
    mixed = mix_ids(ids)
    return Fingerprint(int(np.bitwise_xor.reduce(mixed)), int(mixed.sum(dtype=np.uint64)))


def _finalize(mixed: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FIRST
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _SECOND
    return np.asarray(mixed ^ (mixed >> _SHIFTS[2]))
