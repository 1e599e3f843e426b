"""Data quality of a range: records set aside, and messages filtered or rejected; values only."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.undeclared_names import UndeclaredName
from hopwatch.monitor.payloads import SetAside


@dataclass(frozen=True, slots=True)
class SetAsideReason:
    """Number of records set aside for a reason: in a range of arrival time, and in all, pruned ones included."""

    name: str
    in_range: int
    ever: int


@dataclass(frozen=True, slots=True)
class StoppedMessages:
    """Messages at one node: distinct ids, summed over the final windows of a range.

    ``deferred`` wait there for a later try now, and are not among those that ended.
    """

    stream: str
    node: str
    seen: int
    filtered: int
    rejected: int
    deferred: int = 0


@dataclass(frozen=True, slots=True)
class Quality:
    """All of a range: records set aside and holes of the transport by arrival time, what was stopped by event time.

    ``undeclared`` are the names that are not declared, of which a record arrived in the range or later. ``newest`` are
    some of the records set aside of the range, ``holes`` some of what aged out before it was read, and ``hole_count``
    how many there are. ``stopped`` are some of the nodes that stopped messages, the most rejected first, and
    ``node_count`` is how many nodes saw any message.
    """

    reasons: tuple[SetAsideReason, ...]
    undeclared: tuple[UndeclaredName, ...]
    newest: tuple[SetAside, ...]
    holes: tuple[Hole, ...]
    hole_count: int
    stopped: tuple[StoppedMessages, ...]
    stopped_count: int
    node_count: int
