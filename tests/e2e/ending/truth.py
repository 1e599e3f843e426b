"""Log of the true outcome of messages: written by the processes before each stamp, without a buffer."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from tests.e2e.ending.cases import NODES

ENTRY: Final = Struct("<cqq")
CAME: Final = b"i"
WENT: Final = b"o"
MINUTE_US: Final = 60_000_000


class Log:
    """The log of one process; what was written stays when it is killed."""

    def __init__(self, path: Path) -> None:
        """Open it."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, what: bytes, number: int, event_us: int) -> None:
        """Note that a message came, or went."""
        os.write(self._file, ENTRY.pack(what, number, event_us))


class Truth(NamedTuple):
    """Numbers of lost messages by the start of their window in µs: at each node, and on the whole way."""

    created: int
    nodes: dict[str, Counter[int]]
    lost: Counter[int]


def read(folder: Path) -> Truth:
    """Return the truth of a pipeline, of which each node has a folder with the logs of its processes."""
    minutes: dict[int, int] = {}
    seen: dict[tuple[str, bytes], set[int]] = {}
    for node in NODES:
        for what in (CAME, WENT):
            seen[node, what] = set()
        for path in (folder / node).iterdir():
            for what, number, event_us in ENTRY.iter_unpack(path.read_bytes()):
                minutes[number] = event_us // MINUTE_US * MINUTE_US
                seen[node, what].add(number)
    nodes = {}
    expected = seen[NODES[0], CAME]
    for node in NODES:
        nodes[node] = Counter(minutes[number] for number in (expected | seen[node, CAME]) - seen[node, WENT])
        expected = seen[node, WENT]
    lost = Counter(minutes[number] for number in seen[NODES[0], CAME] - seen[NODES[-1], WENT])
    return Truth(len(seen[NODES[0], CAME]), nodes, lost)
