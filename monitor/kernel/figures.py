"""Figures of lags and losses for a window, an hour or a day, from digests and counts."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import Quantiles

_INT64: Final = (-(2**63), 2**63 - 1)
_RANKS: Final = (0.50, 0.95, 0.99)


def quantiles_of(digest: tdigest.Digest) -> Quantiles | None:
    """Return a digest's figures, µs; none of one that is empty."""
    if not digest.count:
        return None
    # A float next to the largest int64 is beyond it.
    ends = digest.min, digest.max
    p50, p95, p99 = (_within(round(value), ends) for value in tdigest.quantiles(digest, _RANKS).tolist())
    return Quantiles(digest.count, digest.min, p50, p95, p99, digest.max)


def lag_fields(lags: NodeLags, *, is_one_sided: bool) -> dict[str, Any]:
    """Return what a node says of its digests, by the names of its fields; one that stamps one side has no inside."""
    lag_in, lag_out = quantiles_of(lags.lag_in_us), quantiles_of(lags.lag_out_us)
    apart = None if is_one_sided or lag_in is None or lag_out is None else _within(lag_out.p95 - lag_in.p95, _INT64)
    return {
        "lag_in_us": lag_in,
        "lag_out_us": lag_out,
        "inside_us": None if is_one_sided else quantiles_of(lags.inside_us),
        "process_duration_p95_us": apart,
        "displacement": quantiles_of(lags.displacement),
    }


def ratio(part: int, whole: int) -> float | None:
    """Return the part of the whole; none when that is nothing."""
    return part / whole if whole else None


def _within(number: int, ends: tuple[int, int]) -> int:
    return max(ends[0], min(number, ends[1]))
