"""Lags of nodes that only count: digests of the histograms in their packets, as other nodes have them of their stamps.

The law: the same to the byte for the same packets, in whatever order and parts they came. Of a window the percentiles
are those of the middles of buckets, exactly; what is merged further keeps the promise of
:mod:`monitor.kernel.tdigest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.figures import quantiles_of
from hopwatch.probes.contract.lag_histograms import MAX_LAGS, PackedLags, join_histograms, parse_histogram


class CountLags(NamedTuple):
    """Digests of a counting node in a window or a span: lags of what arrived and of what departed, as far as told."""

    lag_in_us: tdigest.Digest = tdigest.EMPTY
    lag_out_us: tdigest.Digest = tdigest.EMPTY

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of both by the names of the fields; none where no lag was told."""
        return {name: quantiles_of(digest) for name, digest in self._asdict().items()}


NO_LAGS: Final = CountLags()


def digest_histograms(histograms: Sequence[PackedLags]) -> tdigest.Digest:
    """Return the digest of all lags of some histograms; of more than MAX_LAGS nothing is known."""
    parts = [parse_histogram(one) for one in histograms if one]
    if not parts:
        return tdigest.EMPTY
    joined = join_histograms(parts)
    if joined.total > MAX_LAGS:
        return tdigest.EMPTY
    is_pure = np.ones(len(joined.counts), np.bool_)
    middles = joined.lags_us.astype(np.float64)
    return tdigest.join_centroids(tdigest.Digest(middles, joined.counts, is_pure, joined.min_us, joined.max_us))


def merge_count_lags(parts: Sequence[CountLags]) -> CountLags:
    """Return the digests of all parts, in whatever order they come."""
    return CountLags(*(tdigest.merge([part[side] for part in parts]) for side in range(2)))
