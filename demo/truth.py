"""The demo's own truth: every node writes down what it did to which message, whatever its probe says about it.

A truth log is a file of ``ENTRY_BYTES`` an entry, each written with one unbuffered ``write``, so that what a node did
before ``kill -9`` stays recorded. The probes never see these files, and the monitor never reads them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.bytes_]
"""Distinct message ids, 16 bytes each, in byte order."""

WINDOW_US: Final = 60_000_000

_ENTRY: Final = struct.Struct("<16sqB")
ENTRY_BYTES: Final = _ENTRY.size
_ENTRY_DTYPE: Final = np.dtype([("id", "S16"), ("at_us", "<i8"), ("deed", "u1")])


class NodeAction(IntEnum):
    """Action of a node on a message."""

    CREATED = 0
    """Gave it its id; the moment is its event time. At the first node alone."""
    HANDED_ON = 1
    """Gave it to the next node; at connector: wrote it to the file, which is what delivered means."""
    REPEATED = 2
    """Handed it on once more, by the duplicate fault."""
    DROPPED = 3
    FILTERED = 4
    REJECTED = 5
    UNTOLD = 6
    """Its probe had an observation of it in a batch that the transport refused, by the probe drop fault."""
    UNHEARD = 7
    """Took it, and let no answer be heard: a receiver of the service alone."""


class CreatedMessage(NamedTuple):
    """A message as it was created; ``number`` counts them from 0."""

    number: int
    id: bytes
    event_time_us: int


class TruthLog:
    """Writer of the truth log of one node's process."""

    def __init__(self, path: Path) -> None:
        """Open ``path`` for appending; half an entry, left behind by a kill in the middle of a write, is cut off."""
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._descriptor).st_size
        os.ftruncate(self._descriptor, size - size % ENTRY_BYTES)

    def write(self, deed: NodeAction, at_us: int, *message_ids: bytes) -> None:
        """Note that ``deed`` was done to these messages, at ``at_us`` µs since 1970."""
        os.write(self._descriptor, b"".join(_ENTRY.pack(message_id, at_us, deed) for message_id in message_ids))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def count_entries(path: Path) -> int:
    """Return how many entries a truth log holds; 0 when there is no log yet."""
    return path.stat().st_size // ENTRY_BYTES if path.exists() else 0


def count_actions(path: Path, deed: NodeAction) -> int:
    """Return how often a truth log says ``deed``; 0 when there is no log yet."""
    return int(np.count_nonzero(_read_entries(path)["deed"] == deed))


def read_unfinished(path: Path) -> list[CreatedMessage]:
    """Return the messages that a log says were created, and nothing more, in order: a killed process held them."""
    entries = _read_entries(path)
    is_birth = entries["deed"] == NodeAction.CREATED
    births = entries[is_birth]
    unfinished = np.flatnonzero(~np.isin(births["id"], entries["id"][~is_birth]))
    return [
        CreatedMessage(int(number), births["id"][number : number + 1].tobytes(), int(births["at_us"][number]))
        for number in unfinished
    ]


class Truth:
    """All actions of all nodes, read from their logs once the pipeline has stopped."""

    def __init__(self, logs: Mapping[str, Iterable[Path]], receivers: Iterable[str] = ()) -> None:
        """Read the logs of each node, in the order of the pipeline; one that was never written counts as empty.

        The logs of ``receivers``, the last nodes of the service, are those of the receivers behind the deliveries.
        """
        self.nodes = tuple(logs)
        self.receivers = tuple(receivers)
        self.terminals = self.receivers or self.nodes[-1:]
        self._entries = {node: np.concatenate([_read_entries(path) for path in paths]) for node, paths in logs.items()}

    def count(self, node: str, *deeds: NodeAction) -> int:
        """Return how often ``node`` did one of ``deeds``."""
        return len(self._of(node, *deeds))

    def ids(self, node: str, *deeds: NodeAction) -> Ids:
        """Return the distinct messages to which ``node`` did one of ``deeds``."""
        return np.unique(self._of(node, *deeds)["id"])

    def anywhere(self, *deeds: NodeAction) -> Ids:
        """Return the distinct messages to which any node did one of ``deeds``."""
        return np.unique(np.concatenate([self.ids(node, *deeds) for node in self.nodes]))

    @cached_property
    def created(self) -> Ids:
        """Return all messages that were created."""
        return self.ids(self.nodes[0], NodeAction.CREATED)

    @cached_property
    def delivered(self) -> Ids:
        """Return the messages that connector wrote to its file, or that a receiver took."""
        actions = (NodeAction.HANDED_ON, NodeAction.REPEATED, NodeAction.UNHEARD)
        return np.unique(np.concatenate([self.ids(node, *actions) for node in self.terminals]))

    @cached_property
    def lost(self) -> Ids:
        """Return the messages that were created, and neither delivered nor stopped on purpose: drops and kills."""
        stopped = self.anywhere(NodeAction.FILTERED, NodeAction.REJECTED)
        return np.setdiff1d(np.setdiff1d(self.created, self.delivered), stopped)

    @property
    def last_window_us(self) -> int | None:
        """Return the start of the last window that has messages, ``None`` without any."""
        return int(self.windows_us(self.created).max()) if len(self.created) else None

    def windows_us(self, ids: Ids) -> NDArray[np.int64]:
        """Return the start of the window, in µs since 1970, of each of ``ids``, all of them created ones."""
        event_times_us = self._event_times_us(ids)
        return event_times_us - event_times_us % WINDOW_US

    def lags_us(self, node: str, *deeds: NodeAction) -> NDArray[np.int64]:
        """Return how long after their event time ``node`` did ``deeds``, once for every time it did."""
        done = self._of(node, *deeds)
        lags_us: NDArray[np.int64] = done["at_us"] - self._event_times_us(done["id"])
        return lags_us

    def _of(self, node: str, *deeds: NodeAction) -> NDArray[np.void]:
        entries = self._entries[node]
        chosen: NDArray[np.void] = entries[np.isin(entries["deed"], deeds)]
        return chosen

    @cached_property
    def _births(self) -> NDArray[np.void]:
        return np.sort(self._of(self.nodes[0], NodeAction.CREATED), order="id")

    def _event_times_us(self, ids: Ids) -> NDArray[np.int64]:
        event_times_us: NDArray[np.int64] = self._births["at_us"][np.searchsorted(self._births["id"], ids)]
        return event_times_us


def split_ids(ids: Ids) -> set[bytes]:
    """Return ``ids`` as Python's bytes, 16 each (numpy by itself would cut zeros off their ends)."""
    packed = ids.tobytes()
    return {packed[start : start + 16] for start in range(0, len(packed), 16)}


def _read_entries(path: Path) -> NDArray[np.void]:
    data = path.read_bytes() if path.exists() else b""
    return np.frombuffer(data[: len(data) - len(data) % ENTRY_BYTES], dtype=_ENTRY_DTYPE)
