"""Relations of a probe instance to neighbouring nodes: they show if the instance uses other message ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.kernel.sets import Sets
from hopwatch.monitor.pathway import Pathway

NO_COUNT: Final = -1
"""In place of a count that is not known."""
_FILE_PRINT: Final = re.compile(r"(?<=.)-[0-9a-f]{16}\Z", re.DOTALL)
"""End of the name of the probe of an imported file, ``SERVER-PRINT``."""


class Relation(NamedTuple):
    """Messages of a probe instance that no other node knows: a sign that ids change between nodes.

    ``came`` counts the messages of its arrivals if no node before saw any of them, ``left`` those of its departures if
    none of them arrived there or was seen before, ``unfollowed`` those of its departures if no node behind saw any of
    them. Each is 0 as soon as one message is known there, and NONE where there is nothing to tell.
    """

    node: int
    instance: str
    came: int
    left: int
    unfollowed: int

    @property
    def probe(self) -> str:
        """The name of the probe."""
        return name_probe(self.instance)

    @property
    def strange(self) -> int:
        """Number of messages under ids that no earlier node knows."""
        return max(self.came, 0) + max(self.left, 0)


def name_probe(instance: str) -> str:
    """Return the name of the probe of an instance."""
    return str(json.loads(instance)[1]) if instance else ""


def name_server(probe: str) -> str:
    """Return the server that a probe is named after: without the print that ends the name of an imported file's."""
    return _FILE_PRINT.sub("", probe)


class WindowStamps(NamedTuple):
    """The observations of a window, batch by batch.

    ``keys`` has node and instance of each batch, ``counts`` how many observations, shape (batches,); ``code`` the bits
    of each observation, shape (observations,).
    """

    keys: Sequence[tuple[int, str]]
    counts: NDArray[np.int64]
    code: NDArray[np.uint8]


def find_relations(
    pathway: Pathway, stamped: WindowStamps, sets: Sets, place: NDArray[np.int64], groups: Groups
) -> tuple[Relation, ...]:
    """Return how each instance relates to the nodes around its own; ``place`` is the mask of each message.

    An instance is odd in a way if all its observations are; so the few odd messages are looked into, and all others are
    only counted.
    """
    code = stamped.code
    numbers = {key: number for number, key in enumerate(sorted(set(stamped.keys)))}
    number = np.array([numbers[key] for key in stamped.keys], np.int64)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(stamped.counts)))
    came, left = (code & ~np.uint8(masks.OUT)).astype(bool), (code & np.uint8(masks.OUT)).astype(bool)
    sides = came, left, left
    totals = np.stack([_count_side(side, starts, number, len(numbers)) for side in sides])
    odd = np.stack(_find_odd(pathway, sets))
    odds = np.zeros((len(sides), len(numbers)), np.int64)
    messages = np.zeros_like(odds)
    is_looked_into: NDArray[np.bool_] = np.any(odd, axis=(0, 2))
    chosen = np.flatnonzero(is_looked_into[place])
    if len(chosen):
        which, at = masks.find_observations(groups, chosen)
        message = chosen[which]
        instance = number[np.searchsorted(starts, at, side="right") - 1]
        node = np.array([key[0] for key in numbers], np.int64)[instance]
        for kind, side in enumerate(sides):
            is_odd = side[at] & odd[kind, place[message], node]
            odds[kind] = np.bincount(instance[is_odd], minlength=len(numbers))
            # Sorted as numbers: what is in flight may be all of a window, and to find pairs takes ten times as long.
            pairs = np.sort(instance[is_odd] * len(groups.starts) + message[is_odd])
            pairs = pairs[np.diff(pairs, prepend=-1) > 0]
            messages[kind] = np.bincount(pairs // len(groups.starts), minlength=len(numbers))
    told = np.where(totals == 0, NO_COUNT, np.where(odds == totals, messages, 0))
    return tuple(Relation(*key, *told[:, at].tolist()) for key, at in numbers.items())


def _count_side(
    side: NDArray[np.bool_], starts: NDArray[np.int64], number: NDArray[np.int64], numbers: int
) -> NDArray[np.int64]:
    """Return how many observations of the numbered instances are of a side, shape (numbers,)."""
    # One place more than there are observations, because the last batches may have none.
    of_batches = np.add.reduceat(np.concatenate((side, np.zeros(1, bool))), starts[:-1], dtype=np.int64)
    return np.bincount(number, of_batches * (np.diff(starts) > 0), numbers).astype(np.int64)


def _find_odd(pathway: Pathway, sets: Sets) -> tuple[NDArray[np.bool_], ...]:
    """Return which messages are odd at each node: came, left, and unfollowed; each of shape (masks, nodes)."""
    before, after = sets.seen @ pathway.downstream, sets.seen @ pathway.downstream.T
    came = sets.seen & ~before & ~pathway.origins
    return came, sets.departed & ~before & ~sets.arrived, sets.departed & ~after & ~pathway.terminals


def merge_relations(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    """Add what the shards tell of each instance; one message that is known in any of them is enough."""
    found: dict[tuple[int, str], list[Relation]] = {}
    for one in relations:
        found.setdefault((one.node, one.instance), []).append(one)
    return tuple(Relation(*key, *map(_add_counts, *(one[2:] for one in parts))) for key, parts in sorted(found.items()))


def _add_counts(*parts: int) -> int:
    told = [part for part in parts if part != NO_COUNT]
    return NO_COUNT if not told else sum(told) if all(told) else 0
