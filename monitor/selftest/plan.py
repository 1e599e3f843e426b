"""Plan of a minute of the self-test: its messages, when each is stamped at which node, and what becomes of it. Pure."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.monitor.selftest.minute import InjectedMinute
from hopwatch.monitor.selftest.stream import LEFT, RIGHT, ROUTER, SELFTEST_CONFIG, SOURCE
from hopwatch.probes.contract.limits import ID_BYTES, WINDOW_US

DEATH_EVERY_US: Final = 3_600_000_000
"""Interval of the minutes in which a probe instance dies."""
TAIL_US: Final = 20_000_000
"""Time after the end of a minute at which the last of its messages has come to its end."""
_SLOW_SHARE: Final = 0.08


class MessageFate(StrEnum):
    """Fate of a message: how it ends, or where it is lost."""

    DELIVERED = "delivered"
    DELIVERED_TWICE = "delivered twice"
    FILTERED = "filtered"
    REJECTED = "rejected"
    LOST_BEFORE_ROUTER = "lost before the router"
    LOST_IN_ROUTER = "lost in the router"
    LOST_BEHIND_ROUTER = "lost behind the router"
    LOST_IN_BRANCH = "lost in a branch"


_WEIGHTS: Final = {
    MessageFate.DELIVERED: 84,
    MessageFate.DELIVERED_TWICE: 4,
    MessageFate.FILTERED: 3,
    MessageFate.REJECTED: 2,
    MessageFate.LOST_BEFORE_ROUTER: 2,
    MessageFate.LOST_IN_ROUTER: 1,
    MessageFate.LOST_BEHIND_ROUTER: 2,
    MessageFate.LOST_IN_BRANCH: 2,
}


class StampCall(StrEnum):
    """Call of a probe."""

    IN = "in"
    OUT = "out"
    FILTERED = "filtered"
    REJECTED = "rejected"


class PlannedStamp(NamedTuple):
    """Stamp of a message at a node, ``offset_us`` after the start of the minute."""

    offset_us: int
    node: str
    kind: StampCall


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """A message: its id, its event time after the start of the minute, its branch, its fate, and its stamps."""

    message_id: bytes
    offset_us: int
    branch: str
    fate: MessageFate
    stamps: tuple[PlannedStamp, ...]

    @property
    def lost_at(self) -> str | None:
        """Node at which the message is missing; None if it is not lost."""
        if self.fate is MessageFate.LOST_IN_BRANCH:
            return self.branch
        return ROUTER if self.fate.name.startswith("LOST") else None


@dataclass(frozen=True, slots=True)
class MinutePlan:
    """Messages of a minute; the instance of node ``left`` dies ``death_offset_us`` after its start, None if not."""

    messages: tuple[PlannedMessage, ...]
    death_offset_us: int | None


def plan_minute(seed: str, start_us: int, count: int) -> MinutePlan:
    """Return the plan of the minute that starts at ``start_us``: the same for the same seed."""
    chance = random.Random(f"{seed}/{start_us}")  # noqa: S311 - nothing secret
    messages = tuple(_plan_message(chance) for _ in range(count))
    dies = is_death_minute(start_us)
    return MinutePlan(messages, chance.randrange(10_000_000, WINDOW_US - 10_000_000) if dies else None)


def count_plan(start_us: int, plan: MinutePlan, *, is_exact: bool) -> InjectedMinute:
    """Return what a plan makes true of its window, lags apart."""
    fates = Counter(message.fate for message in plan.messages)
    duplicates: Counter[str] = Counter()
    lost: dict[str, list[bytes]] = {node: [] for node in SELFTEST_CONFIG.pathway.nodes}
    for message in plan.messages:
        if message.lost_at is not None:
            lost[message.lost_at].append(message.message_id)
        arrived = Counter(stamp.node for stamp in message.stamps if stamp.kind is not StampCall.OUT)
        duplicates.update({node: count - 1 for node, count in arrived.items() if count > 1})
    return InjectedMinute(
        start_us,
        known=len(plan.messages),
        delivered=fates[MessageFate.DELIVERED] + fates[MessageFate.DELIVERED_TWICE],
        filtered=fates[MessageFate.FILTERED],
        rejected=fates[MessageFate.REJECTED],
        duplicates=dict(duplicates),
        lost=lost,
        is_exact=is_exact,
    )


def is_death_minute(start_us: int) -> bool:
    """Return whether a probe instance dies in the minute that starts at ``start_us``."""
    return start_us % DEATH_EVERY_US == DEATH_EVERY_US // 2


def _plan_message(chance: random.Random) -> PlannedMessage:
    fate = chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
    branch = chance.choice((LEFT, RIGHT))
    message_id, offset_us = chance.randbytes(ID_BYTES), chance.randrange(WINDOW_US)
    return PlannedMessage(message_id, offset_us, branch, fate, tuple(_plan_stamps(chance, fate, branch, offset_us)))


def _plan_stamps(chance: random.Random, fate: MessageFate, branch: str, offset_us: int) -> list[PlannedStamp]:
    """Return the stamps of a message up to the place where it ends."""
    leaves = PlannedStamp(offset_us, SOURCE, StampCall.OUT)
    arrived_us = offset_us + _choose_delay_us(chance)
    if fate in (MessageFate.FILTERED, MessageFate.REJECTED):
        return [leaves, PlannedStamp(arrived_us, ROUTER, StampCall(fate.value))]
    routed_us = arrived_us + _choose_delay_us(chance)
    reached_us = routed_us + _choose_delay_us(chance)
    way = [
        leaves,
        PlannedStamp(arrived_us, ROUTER, StampCall.IN),
        PlannedStamp(routed_us, ROUTER, StampCall.OUT),
        PlannedStamp(reached_us, branch, StampCall.IN),
        PlannedStamp(reached_us + _choose_delay_us(chance), branch, StampCall.OUT),
    ]
    ends = {
        MessageFate.LOST_BEFORE_ROUTER: 1,
        MessageFate.LOST_IN_ROUTER: 2,
        MessageFate.LOST_BEHIND_ROUTER: 3,
        MessageFate.LOST_IN_BRANCH: 4,
    }
    stamps = way[: ends.get(fate, len(way))]
    if fate is MessageFate.DELIVERED_TWICE:
        # The router gets it a second time, and drops the copy.
        stamps.append(PlannedStamp(arrived_us + _choose_delay_us(chance), ROUTER, StampCall.IN))
    return stamps


def _choose_delay_us(chance: random.Random) -> int:
    """Return the time of a hop, or inside a node: mostly some milliseconds, and sometimes seconds."""
    is_slow = chance.random() < _SLOW_SHARE
    return chance.randrange(300_000, 4_000_000) if is_slow else chance.randrange(2_000, 60_000)
