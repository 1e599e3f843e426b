"""Lags of messages that are counted, as a host or a client passes them, packed as the wire has them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopwatch.probes.contract.lag_histograms import PackedLags, count_lags
from hopwatch.probes.contract.limits import MAX_HISTOGRAM_BYTES
from hopwatch.probes.errors import ProbeError

MAX_LAG_MS: Final = 2**53
"""Greatest lag in ms, 285,000 years: in µs it has 63 bits."""
_MAX_SHOWN: Final = 1 << 128


def pack_lags(lags_ms: ArrayLike, lag_counts: ArrayLike | None, number: int) -> PackedLags:
    """Return the histogram of the lags of ``number`` messages, in ms: one each, or of each as many as are counted.

    Raises:
        ProbeError: they are no finite numbers, no whole counts, or of more or fewer messages.
    """
    lags = _read_column("lags", lags_ms, "iuf")
    if lags.dtype.kind == "f" and not np.isfinite(lags).all():
        raise ProbeError(f"lags are finite numbers of milliseconds, got {lags[~np.isfinite(lags)][0]}")
    if lags.size and not -MAX_LAG_MS <= lags.min() <= lags.max() <= MAX_LAG_MS:
        raise ProbeError(f"lags lie in -2^53 … 2^53 ms, got {lags.min()} to {lags.max()}")
    counts = None if lag_counts is None else _read_counts(lag_counts, lags.size)
    total = lags.size if counts is None else sum(counts.tolist())
    if total != number:
        raise ProbeError(f"there is a lag of each of the {_format(number)} messages, or of none, got {_format(total)}")
    is_whole = lags.dtype.kind != "f"
    lags_us = lags.astype(np.int64) * 1_000 if is_whole else np.rint(lags.astype(np.float64) * 1_000).astype(np.int64)
    packed = count_lags(lags_us, counts)
    if len(packed) > MAX_HISTOGRAM_BYTES:
        raise ProbeError(f"a lag histogram has at most {MAX_HISTOGRAM_BYTES} bytes, got {len(packed)}: count in parts")
    return packed


def _read_counts(lag_counts: ArrayLike, size: int) -> NDArray[np.int64]:
    counts = _read_column("counts of lags", lag_counts, "iu")
    if counts.size != size:
        raise ProbeError(f"there is a count of each of the {size} lags, got {counts.size}")
    if counts.size and not 0 <= int(counts.min()) <= int(counts.max()) < 1 << 63:
        raise ProbeError(f"counts of lags lie in 0 … 2^63 - 1, got {int(counts.min())} to {int(counts.max())}")
    return counts.astype(np.int64)


def _read_column(what: str, column: ArrayLike, kinds: str) -> NDArray[Any]:
    """Return a column of numbers as an array; an empty list has no type of its own."""
    found = np.asarray(column)
    if found.ndim != 1:
        raise ProbeError(f"{what} are a list or an array of one dimension, got {found.ndim}")
    if found.size and found.dtype.kind not in kinds:
        raise ProbeError(f"{what} are {'whole ' if 'f' not in kinds else ''}numbers, got {found.dtype}")
    return found if found.size else np.empty(0, np.int64)


def _format(number: int) -> str:
    return str(number) if number < _MAX_SHOWN else "a greater number"
