"""Memory of the detector: one record per series, always of 7.5 KiB.

All values of a series are kept as distances from its first one, its anchor, so that single precision is enough for a
series that moves little and far from zero. Moments are µs since 1970, spans end in their unit, all else is in the
series' own unit.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

VIEW_COUNT: Final = 25
"""Ways in which a value may be strange; :mod:`monitor.outliers.views` names them."""
RECENT_VALUES: Final = 192
"""Values of the near past that are kept as they are: two windows of the longest shift of mean."""
TAIL_VALUES: Final = 24
"""The largest values of a view that make up its tail, and as many that wait to be learnt."""
HALF_HOURS: Final = 48
HOURS: Final = 168

VERSION: Final = 1
_MAGIC: Final = b"HWOD"
_HEADER: Final = struct.Struct("<4sHxxI")
_LONG_QUIET: Final = 1 << 40

Array = NDArray[Any]
States = NDArray[np.void]
"""Records of :data:`STATE`, shape (series,)."""


class StateError(ValueError):
    """Bytes that are no state of this version."""


STATE: Final = np.dtype(
    [
        # How many values there were, and since the last long gap; when the first and the newest were; the usual step.
        ("seen", "<i8"),
        ("unbroken", "<i8"),
        ("first_us", "<i8"),
        ("last_us", "<i8"),
        ("step_s", "<f8"),
        # The first value and the newest; weighted means; the mean size of a step from value to value, and the least.
        ("anchor", "<f8"),
        ("newest", "<f8"),
        ("fast", "<f8"),
        ("slow", "<f8"),
        ("jitter", "<f8"),
        ("grain", "<f8"),
        # How far the series has lately been off its usual day and week; how far a half-hour usually is off.
        ("drift", "<f8"),
        ("week_drift", "<f8"),
        ("deviation", "<f8"),
        ("deviation_count", "<i8"),
        # The present half-hour and hour, counted since 1970, with sum and count of their values.
        ("half_hour", "<i8"),
        ("half_hour_sum", "<f8"),
        ("half_hour_count", "<i8"),
        ("hour", "<i8"),
        ("hour_sum", "<f8"),
        ("hour_count", "<i8"),
        # Values since one was at least a notice; when the latest episode began; 0, or 1 noticed, 2 an outlier.
        ("quiet", "<i8"),
        ("began_us", "<i8"),
        ("told", "<i8"),
        # Values that wait to be learnt; of each view how many values its tail speaks for, and their mean.
        ("unlearnt", "<i8"),
        ("means", "<f8", (VIEW_COUNT,)),
        ("views_seen", "<i4", (VIEW_COUNT,)),
        # The tail of each view: from where on, the two parameters beyond, and -log10 of the share beyond.
        ("edges", "<f4", (VIEW_COUNT,)),
        ("shapes", "<f4", (VIEW_COUNT,)),
        ("scales", "<f4", (VIEW_COUNT,)),
        ("rates", "<f4", (VIEW_COUNT,)),
        # The largest values of each view, falling: those learnt, and those that wait.
        ("tops", "<f4", (VIEW_COUNT, TAIL_VALUES)),
        ("waiting", "<f4", (VIEW_COUNT, TAIL_VALUES)),
        # The newest values, newest last; the usual half-hours of a day and hours of a week.
        ("recent", "<f4", (RECENT_VALUES,)),
        ("day", "<f4", (HALF_HOURS,)),
        ("week", "<f4", (HOURS,)),
        # Of how many days and weeks; how often a tail was halved, odd or even.
        ("day_days", "u1", (HALF_HOURS,)),
        ("week_weeks", "u1", (HOURS,)),
        ("thinned", "u1", (VIEW_COUNT,)),
        # No byte is left to chance: the same memory is the same bytes.
        ("spare", "u1", (3,)),
    ],
    align=True,
)
"""The memory of one series."""


def new_states(count: int) -> States:
    """Return the memory of ``count`` new series."""
    states = np.zeros(count, STATE)
    states["tops"] = states["waiting"] = -np.inf
    states["half_hour"] = states["hour"] = -1
    states["quiet"] = _LONG_QUIET
    return states


def to_bytes(states: States) -> bytes:
    """Return the memory as bytes: a header with version and count, then the records, little-endian."""
    return _HEADER.pack(_MAGIC, VERSION, len(states)) + states.tobytes()


def from_bytes(data: bytes) -> States:
    """Return the memory that :func:`to_bytes` wrote.

    Raises:
        StateError: other bytes, another version, or bytes that are missing or too many.
    """
    if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
        raise StateError(f"The bytes of an outlier state begin with {_MAGIC!r}; got {bytes(data[:4])!r}.")
    _, version, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise StateError(f"An outlier state of version {version} cannot be read, only {VERSION}: score the past anew.")
    expected = _HEADER.size + count * STATE.itemsize
    if len(data) != expected:
        raise StateError(f"An outlier state of {count:,} series has {expected:,} bytes; got {len(data):,}.")
    return np.frombuffer(data, STATE, count, _HEADER.size).copy()
