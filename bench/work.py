"""The work that is measured: how much of it, what it is made of, and by which rules it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import MAX_LOST_IDS
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import MAX_COUNT, WINDOW_MS, WINDOW_US

NODES: Final = ("n0", "n1", "n2", "n3")
HOP_LOSS_RATIO: Final = 0.005
SEED: Final = 1
FIRST_START_MS: Final = 1_763_700_000_000
OBSERVATIONS_PER_MINUTE: Final = 2_000_000
"""How many observations of all streams together fall in a minute, unless the minutes are given."""

TERMS: Final = WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
"""The defaults."""

_KEPT_PER_MESSAGE: Final = sum((1 - HOP_LOSS_RATIO) ** hop for hop in range(len(NODES)))
LABELS: Final = (("host", 12), ("partition", 32), ("version", 2))
"""Labels that batches may have, and how many values of each there are."""
_HOP_US: Final = (1_000, 10_000)
_INSIDE_US: Final = (200, 5_000)
_CLEAR_OF_THE_LIMIT: Final = 0.8


class WorkError(ConfigurationError):
    """Work that cannot be measured; the message says what was got and what to do."""


class Block(NamedTuple):
    """All observations of one node in one window, in order of event time; arrays as on the wire.

    ``message_ids`` uint64 of shape (n, 2), ``event_offset_us``, ``lag_in_us`` and ``lag_out_us`` int64 of shape (n,).
    ``lost_ids`` are the messages that left the node before and never came, shape (lost, 2).
    """

    stream: int
    window: int
    node: int
    message_ids: NDArray[np.uint64]
    event_offset_us: NDArray[np.int64]
    lag_in_us: NDArray[np.int64]
    lag_out_us: NDArray[np.int64]
    lost_ids: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Work:
    """Observations of a chain of four nodes, 0.5 % lost a hop. The same work is the same bytes.

    A segment is closed when it holds 8 MiB or is ``segment_s`` old. Each batch has so many ``labels``, whose values
    change from batch to batch.
    """

    observations: int
    streams: int = 1
    batch: int = 4096
    minutes: int = 0
    segment_s: int = 60
    labels: int = 0

    def __post_init__(self) -> None:
        """Choose the minutes where they were left open, and check what was given.

        Raises:
            WorkError: a number out of its range, or more lost ids in a window than the monitor keeps.
        """
        if not self.minutes:
            object.__setattr__(self, "minutes", max(1, round(self.observations / OBSERVATIONS_PER_MINUTE)))
        for name, most in (("streams", 10_000), ("batch", MAX_COUNT), ("minutes", 600), ("segment_s", 60)):
            if not 1 <= getattr(self, name) <= most:
                raise WorkError(f"{name} is a whole number from 1 to {most:,}, got {getattr(self, name):,}")
        if not 0 <= self.labels <= len(LABELS):
            raise WorkError(f"labels is a whole number from 0 to {len(LABELS)}, got {self.labels}")
        if self.messages_a_window < 1:
            least = self.streams * self.minutes * len(NODES)
            raise WorkError(f"{self.observations:,} observations do not fill the windows: take {least:,} or more")
        if self.messages_a_window * HOP_LOSS_RATIO > MAX_LOST_IDS * _CLEAR_OF_THE_LIMIT:
            most_ids = f"a window of a node keeps {MAX_LOST_IDS:,} lost ids"
            raise WorkError(f"{most_ids}, and {self.minutes} minutes would lose more in one: take more minutes")

    @property
    def name(self) -> str:
        """Return a name that no other work has."""
        parts = (self.observations, self.streams, self.batch, self.minutes, self.segment_s, SEED, self.labels)
        return "-".join(str(part) for part in parts)

    @property
    def messages_a_window(self) -> int:
        """Return how many messages enter a window of a stream."""
        return round(self.observations / _KEPT_PER_MESSAGE / self.streams / self.minutes)

    @property
    def windows(self) -> int:
        """Return the number of windows of all streams."""
        return self.streams * self.minutes

    @property
    def end_us(self) -> int:
        """Return the end of the last window."""
        return FIRST_START_MS * 1_000 + self.minutes * WINDOW_US

    def as_json(self) -> dict[str, Any]:
        """Return the fields, for a process that builds the work anew."""
        return asdict(self)


def stream_name(number: int) -> str:
    """Return the name of a stream."""
    return f"s{number}"


def start_ms(window: int) -> int:
    """Return the start of a window, counted from 0."""
    return FIRST_START_MS + window * WINDOW_MS


def pathway() -> Pathway:
    """Return the pathway of every stream."""
    return Pathway.parse(" -> ".join(NODES))


def rules(work: Work) -> dict[str, StreamConfig]:
    """Return the rules of all streams."""
    return {stream_name(number): StreamConfig(pathway(), TERMS) for number in range(work.streams)}


def blocks(work: Work, windows: range | None = None) -> Iterator[Block]:
    """Yield the observations of all streams, or of the windows given, window by window and node by node."""
    for window in windows or range(work.minutes):
        for stream in range(work.streams):
            yield from _window(work.messages_a_window, stream, window)


def _window(messages: int, stream: int, window: int) -> Iterator[Block]:
    chance = np.random.default_rng([SEED, stream, window])
    ids = chance.integers(0, 2**64, (messages, 2), np.uint64)
    offset_us = np.sort(chance.integers(0, WINDOW_US, messages))
    lag_us = np.zeros(messages, np.int64)
    lost = np.zeros(0, np.intp)
    for node in range(len(NODES)):
        stays = np.ones(len(ids), bool)
        stays[lost] = False
        lost_ids = ids[lost]
        ids, offset_us, lag_us = ids[stays], offset_us[stays], lag_us[stays]
        lag_in_us = lag_us + _delay_us(chance, len(ids), *_HOP_US)
        lag_us = lag_in_us + _delay_us(chance, len(ids), *_INSIDE_US)
        yield Block(stream, window, node, ids, offset_us, lag_in_us, lag_us, lost_ids)
        lost = np.flatnonzero(chance.random(len(ids), np.float32) < HOP_LOSS_RATIO)


def _delay_us(chance: np.random.Generator, count: int, least_us: int, mean_us: int) -> NDArray[np.int64]:
    return np.asarray(least_us + chance.standard_exponential(count, np.float32) * np.float32(mean_us)).astype(np.int64)
