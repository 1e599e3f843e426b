"""The cases: which end, at which node, at which moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Final

NODES: Final = ("a", "b", "c")
STREAM: Final = "orders"


class End(StrEnum):
    """End of one of two replicas."""

    NONE = "none"
    KILL = "kill"
    TERM = "term"
    EXIT = "exit"
    EXEC = "exec"
    DAEMON = "daemon"
    FORK = "fork"
    WORKER = "worker"
    PACKING = "packing"
    FULL = "full"
    NAME = "name"
    TIME = "time"
    ID = "id"
    FLIP = "flip"
    EMPTY = "empty"
    CUT = "cut"
    SCHEMA = "schema"


TOLD: Final = {
    End.NONE: "nothing",
    End.KILL: "SIGKILL",
    End.TERM: "SIGTERM without a handler",
    End.EXIT: "os._exit",
    End.EXEC: "exec of another program",
    End.DAEMON: "main returns while a daemon thread stamps",
    End.FORK: "a forked child that stamps ends by os._exit",
    End.WORKER: "a worker of multiprocessing that stamps is terminated",
    End.PACKING: "an id that cannot be packed",
    End.FULL: "a spool that is full",
    End.NAME: "a node's name that is misspelt",
    End.TIME: "event times in ms",
    End.ID: "ids of another type",
    End.FLIP: "one bit of one record flipped",
    End.EMPTY: "a segment emptied",
    End.CUT: "a segment cut after 40 bytes",
    End.SCHEMA: "a probe of another schema",
}
LASTING: Final = (End.NONE, End.FULL, End.NAME, End.TIME, End.ID)
"""They have no moment: it is so from the start."""
DAMAGED: Final = (End.FLIP, End.EMPTY, End.CUT, End.SCHEMA)
"""They happen to segments, at moment 0 to the only one of a replica that lived for a short time, else to the last."""


@dataclass(frozen=True, slots=True)
class Case:
    """An end of one replica of a node, so many seconds after it was born."""

    end: End
    node: str
    moment_s: float

    @property
    def name(self) -> str:
        """Return what it is called, as a folder and as a test."""
        return f"{self.end}-{self.node}-{self.moment_s:g}"


def _moments(end: End) -> tuple[float, ...]:
    if end in LASTING:
        return (0.0,)
    return (0.0, 3.0) if end in DAMAGED else (0.0, 0.7, 2.5)


def usual() -> list[Case]:
    """Return every end at every node, each end at each of its moments: every node has another one of them."""
    return [
        Case(end, node, moments[(at + number) % len(moments)])
        for at, end in enumerate(End)
        for moments in [_moments(end)]
        for number, node in enumerate(NODES)
    ]


def cases() -> list[Case]:
    """Return every end at every node at every moment, the usual ones first."""
    every = [Case(end, node, moment_s) for end in End for node, moment_s in product(NODES, _moments(end))]
    return sorted(every, key=lambda case: case not in usual())
