"""Digest: centroids in order, and the two bounds. Digests are built in :mod:`monitor.kernel.tdigest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class DigestError(ValueError):
    """Values, a rank, bytes or a dict that no digest can be made from or asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Digest:
    """Centroids in order of their means, each array of shape (centroids,), and the bounds, in µs.

    ``means`` are whole numbers wherever the values were. ``weights`` count values. A centroid is ``pure`` when all its
    values equal its mean. ``min`` and ``max`` are exact, and 0 without values. A float holds every whole number up to
    2**53 µs, 285 years; a mean beyond that is the nearest float.
    """

    means: Floats
    weights: Ints
    pure: Bools
    min: int
    max: int

    @property
    def count(self) -> int:
        """The number of values, exact."""
        return int(self.weights.sum())


EMPTY: Final = Digest(np.empty(0), np.empty(0, np.int64), np.empty(0, np.bool_), 0, 0)


def group_equal(digest: Digest) -> Digest:
    """Return ``digest`` with centroids of one mean and one purity, which must be neighbours, joined into one.

    Without that, equal values that came in different parts would leave a trace of how they were parted.
    """
    means, pure = digest.means, digest.pure
    is_new = np.ones(means.size, np.bool_)
    is_new[1:] = (means[1:] != means[:-1]) | (pure[1:] != pure[:-1])
    if is_new.all():
        return digest
    starts = np.flatnonzero(is_new)
    return Digest(means[starts], np.add.reduceat(digest.weights, starts), pure[starts], digest.min, digest.max)


def run_lengths(starts: NDArray[np.intp], total: int) -> Ints:
    """Return how long each of the runs is that begin at ``starts``, the last one ending at ``total``."""
    lengths = np.empty_like(starts)
    lengths[:-1] = starts[1:] - starts[:-1]
    lengths[-1] = total - starts[-1]
    return lengths
