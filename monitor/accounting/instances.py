"""States of probe instances: reporting, silent or gone; values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.monitor.kernel.books import Book, ClockOffset

ALIVE_WITHIN_US: Final = 60_000_000
"""An alive instance has reported within this time before the watermark: several of its heartbeats."""
AHEAD_US: Final = 1_000_000
"""A batch that was sent so long after it arrived shows that its probe's clock is ahead; less may be the transport's."""
OFF_US: Final = 5_000
"""A clock that is surely so far from the brokers' is told where lags are shown."""
BYE_LISTED_US: Final = 3_600_000_000
"""Time that an instance is listed after its bye."""
SILENT_LISTED_US: Final = 24 * 3_600_000_000
"""Time that an instance is listed after it fell silent without a bye."""


class InstanceState(StrEnum):
    """State of a probe instance; the states that need attention come first."""

    SILENT = "silent"
    """Without a bye, and without a report of the last minute: it may hold stamps that windows wait for."""
    TROUBLED = "troubled"
    """It tells, and has missing batches, drops, observations that were set aside, or a clock that is ahead."""
    RETIRED = "retired"
    """Silent for so long that nothing waits for it any more."""
    ALIVE = "alive"
    BYE = "bye"


@dataclass(frozen=True, slots=True)
class Instance:
    """One probe instance; ``missing_batches`` and all tallies are since its epoch."""

    book: Book
    state: InstanceState


class InstanceClock(NamedTuple):
    """Clock of a probe instance, with the bounds of its offset from the brokers' clock."""

    stream: str
    node: str
    probe: str
    offset: ClockOffset


@dataclass(frozen=True, slots=True)
class InstancePage:
    """One page of a list of probe instances.

    ``counts`` are of all of them by state, ``found`` of those that are listed, on whatever page; ``folded`` of those
    that have left so long ago that they are not. ``moment_us`` is what they are judged by: the watermark, or where the
    store was filled once the newest arrival.
    """

    instances: tuple[Instance, ...]
    counts: Mapping[InstanceState, int]
    found: int
    folded: Mapping[InstanceState, int]
    moment_us: int
