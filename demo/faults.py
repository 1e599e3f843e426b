"""Faults of the demo: which, at which node, how often; decided by seed and message number, never by timing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import Final


class FaultAction(Enum):
    """Action of a node on one message; ``PASS`` is the healthy one."""

    PASS = "pass"  # noqa: S105 - no password
    DROP = "drop"
    FILTER = "filter"
    REJECT = "reject"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class NodeFaults:
    """The faults of one node. Ratios are of the messages it handles, 0 … 1, together at most 1; see ``Faults``.

    ``healed_from`` is the number of the first message that is handled well again, if there is one. From the message
    ``deployed_from`` on the node runs ``version``, and before it the first one; without it no version is told.
    """

    drop_ratio: float = 0.0
    filter_ratio: float = 0.0
    reject_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    probe_drop_ratio: float = 0.0
    delay_s: float = 0.0
    skew_s: float = 0.0
    healed_from: int | None = None
    deployed_from: int = 0
    version: str = ""


FIRST_VERSION: Final = "1.0"
LANES: Final = 4
"""Lanes of a node, which share its messages as the partitions of a topic do."""
BAD_LANE: Final = 3
DEPLOY_LOSS_RATIO: Final = 0.03
"""Share of the messages of the bad lane that a new version loses."""
MALFORMED_RATIO: Final = 0.01
"""Share of the events for a gate that are broken."""


@dataclass(frozen=True, slots=True)
class Kill:
    """``kill -9`` of a node, so many seconds after the start of the pipeline."""

    node: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults of one run.

    * drop: the node receives the message, and silently neither hands it on nor stamps it out
    * filter, reject: the node stops it and says so, with a reason
    * duplicate: the node handles, stamps and hands it on twice
    * delay: the node keeps every message for that long
    * skew: the clock of the node's probe is ahead by that much, or behind
    * probe drop: so many of the probe's batches are refused by its transport
    * deploy: a new version, which drops some messages of one lane; stamps say version and lane
    * kill: the process gets SIGKILL, and is started again some seconds later
    """

    seed: int = 0
    nodes: dict[str, NodeFaults] = field(default_factory=dict)
    kills: tuple[Kill, ...] = ()

    def select_node(self, node: str) -> NodeFaults:
        """Return the faults of ``node``; none if none were requested."""
        return self.nodes.get(node, NodeFaults())

    @property
    def blurred(self) -> frozenset[str]:
        """Return the nodes whose probes cannot report everything: killed, or refused by their transport."""
        refused = {node for node, faults in self.nodes.items() if faults.probe_drop_ratio}
        return frozenset(refused | self.killed)

    @property
    def killed(self) -> frozenset[str]:
        """Return the nodes that are to be killed."""
        return frozenset(kill.node for kill in self.kills)


def draw_chance(seed: int, node: str, what: str, number: int) -> float:
    """Return a number in [0, 1) that depends on the arguments alone: the first 53 bits of their BLAKE2b digest."""
    digest = blake2b(f"{seed}/{node}/{what}/{number}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


class Dice:
    """Decides the fate of each message at one node."""

    def __init__(self, seed: int, node: str, faults: NodeFaults) -> None:
        """Lay the ratios of ``faults`` end to end on [0, 1)."""
        self._seed = seed
        self._node = node
        self._healed_from = faults.healed_from
        self._deployed_from, self._version = faults.deployed_from, faults.version
        self._steps: list[tuple[float, FaultAction]] = []
        end = 0.0
        for ratio, fate in (
            (faults.drop_ratio, FaultAction.DROP),
            (faults.filter_ratio, FaultAction.FILTER),
            (faults.reject_ratio, FaultAction.REJECT),
            (faults.duplicate_ratio, FaultAction.DUPLICATE),
        ):
            end += ratio
            if ratio:
                self._steps.append((end, fate))

    def fate(self, number: int) -> FaultAction:
        """Return the action on message ``number`` here: the same for the same seed, whenever the message comes."""
        if self._healed_from is not None and number >= self._healed_from:
            return FaultAction.PASS
        is_bad = self._is_deployed(number) and number % LANES == BAD_LANE
        if is_bad and draw_chance(self._seed, self._node, "deploy", number) < DEPLOY_LOSS_RATIO:
            return FaultAction.DROP
        if not self._steps:
            return FaultAction.PASS
        drawn = draw_chance(self._seed, self._node, "fate", number)
        return next((fate for end, fate in self._steps if drawn < end), FaultAction.PASS)

    def labels(self, number: int) -> dict[str, str] | None:
        """Return the labels of message ``number`` here, version and lane; None if no version is deployed."""
        if not self._version:
            return None
        version = self._version if self._is_deployed(number) else FIRST_VERSION
        return {"version": version, "lane": str(number % LANES)}

    def _is_deployed(self, number: int) -> bool:
        return bool(self._version) and number >= self._deployed_from
