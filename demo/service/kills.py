"""Random kills of a run: which process, and at which share of the work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final, NamedTuple

KILLABLE: Final = ("gate", "router", "norm", "deliver", "retrier")
"""Processes of the service that may be killed; sender and receivers keep the account."""
BROKER: Final = "broker-"
"""Beginning of the name of a broker."""
NODES_OF: Final = {
    "gate": ("gate",),
    "router": ("router",),
    "norm": ("norm",),
    # What a receiver's stamps are missing for is lost behind norm, where ways part.
    "deliver": ("norm", "mainline", "others"),
    "retrier": ("norm", "mainline", "others"),
}
"""Nodes of which nothing is claimed beyond the truth once a process was killed."""


LAST_RATIO: Final = 0.9
"""Share of the work behind which nothing is killed: what the gate refuses never comes to its end."""


class RandomKill(NamedTuple):
    """Kill of a process once a share of all work is done, 0 to 1."""

    at_ratio: float
    process: str


def draw_kills(seed: int, count: int, processes: Sequence[str]) -> list[RandomKill]:
    """Draw kills, spread evenly over the work in chance's way; sorted by the share of it."""
    chance = random.Random(f"{seed}/kills")  # noqa: S311 - chance that a seed repeats
    return sorted(RandomKill(chance.random() * LAST_RATIO, chance.choice(processes)) for _ in range(count))


def name_brokers(count: int) -> tuple[str, ...]:
    """Return the names of so many brokers."""
    return tuple(f"{BROKER}{number + 1}" for number in range(count))
