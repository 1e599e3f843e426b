"""Deferrals: messages that a node keeps for a later try, and when they count as sighted.

A message that waits counts as first sighted late enough to be in flight until its wait has ended and settle has passed;
so all that is done for late messages is done for it. One that waits beyond the amendments of its window is never
settled: nobody will see its end. Each window holds so many different moments at most as it has seconds to wait in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.journeys import BatchSource
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.probes.contract.limits import WINDOW_US

NEVER_US: Final = 2**63 - 1
"""Time after all others, when nothing is in flight any more; also the sighting of what is never settled."""
ALWAYS_US: Final = -(2**63)
"""The sighting of messages that were sighted by the end of their window: whoever judges it, they are settled."""
STEP_US: Final = 1_000_000
"""Moments until which messages wait count as the next multiple of this."""

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Waits(NamedTuple):
    """Sightings of the missing messages of a window, as far as deferrals moved them, µs.

    ``passed_us`` is the latest that is settled, 0 without any; ``next_us`` the earliest that is not yet, NEVER_US
    without any: when that has settled, the window is due.
    """

    passed_us: int = 0
    next_us: int = NEVER_US


NO_WAITS: Final = Waits()
"""Nothing was deferred."""


class Deferrals(NamedTuple):
    """Deferred observations of a window.

    ``at`` are their places among all observations, ``until_us`` until when each says that its message waits. Both of
    shape (deferred,).
    """

    at: Int64s
    until_us: Int64s


class SeenObservations(NamedTuple):
    """All observations of a window: node, bits and arrival of each, shape (observations,), and their messages."""

    node_of: NDArray[np.uint8]
    code: NDArray[np.uint8]
    arrival_us: Int64s
    groups: Groups


def read_deferrals(is_deferred: Bools, counts: Int64s, sources: Sequence[BatchSource]) -> Deferrals:
    """Read until when deferred messages wait from the records of their batches, each of so many observations."""
    at = np.flatnonzero(is_deferred)
    begins = np.cumsum(counts) - counts
    batch = np.searchsorted(begins, at, "right") - 1
    until_us = np.zeros(len(at), np.int64)
    for number in np.unique(batch).tolist():
        source, chosen = sources[number], batch == number
        if source.record is not None:
            rows = at[chosen] - begins[number]
            until_us[chosen] = source.record(rows if source.rows is None else source.rows[rows]).until_us
    return Deferrals(at, until_us)


def move_sightings(
    sighted_us: Int64s, deferred: Deferrals, seen: SeenObservations, window_end_us: int, terms: WindowPolicy
) -> Int64s:
    """Return the sightings of all messages, shape (messages,), those of deferred ones moved as SEMANTICS.md says."""
    messages, of_message = np.unique(masks.find_messages(seen.groups, deferred.at), return_inverse=True)
    until_us = np.zeros(len(messages), np.int64)
    np.maximum.at(until_us, of_message, _round_up(deferred.until_us))
    last_us = np.full(len(messages), ALWAYS_US)
    which, at = _find_others(seen.groups, messages, deferred.at)
    np.maximum.at(last_us, which, seen.arrival_us[at])
    moved_us = np.maximum(last_us, until_us - terms.transit_us)
    moved_us[moved_us <= window_end_us] = ALWAYS_US
    moved_us[until_us > terms.waits_until_us(window_end_us - WINDOW_US)] = NEVER_US
    found = sighted_us.copy()
    found[messages] = np.maximum(found[messages], moved_us)
    return found


def count_deferred(deferred: Deferrals, seen: SeenObservations, place: Int64s, lost_inside: Bools) -> Int64s:
    """Return how many messages are deferred at each node and, last, at any of them; shape (nodes + 1,).

    ``lost_inside`` is by mask and node, ``place`` the mask of each message.
    """
    message, node = _find_pairs(deferred, seen)
    is_kept = lost_inside[place[message], node]
    nodes = lost_inside.shape[1]
    return np.append(np.bincount(node[is_kept], minlength=nodes), len(np.unique(message[is_kept]))).astype(np.int64)


def count_deferred_arrivals(deferred: Deferrals, seen: SeenObservations, nodes: int) -> Int64s:
    """Return how many messages each node deferred of which it has no other arrival, shape (nodes,)."""
    message, node = _find_pairs(deferred, seen)
    messages, of_message = np.unique(message, return_inverse=True)
    which, at = _find_others(seen.groups, messages, deferred.at)
    came = (seen.code[at] & masks.IN) > 0
    arrived = which[came] * nodes + seen.node_of[at[came]]
    return np.bincount(node[~np.isin(of_message * nodes + node, arrived)], minlength=nodes).astype(np.int64)


def find_waits(sighted_us: Int64s, is_missing: Bools, last_first_sighting_us: int, before_us: int) -> Waits:
    """Return what missing messages, row by row, wait for; what was sighted before ``before_us`` is settled.

    Sightings up to ``last_first_sighting_us`` say nothing of their own: the window waits for that one anyway.
    """
    moved_us = sighted_us[is_missing & (sighted_us > last_first_sighting_us) & (sighted_us < NEVER_US)]
    passed_us, left_us = moved_us[moved_us < before_us], moved_us[moved_us >= before_us]
    return Waits(int(passed_us.max(initial=0)), int(left_us.min(initial=NEVER_US)))


def _round_up(until_us: Int64s) -> Int64s:
    """Return moments in whole steps; what is before 1970 is no moment to wait for."""
    return -(-np.clip(until_us, 0, NEVER_US - STEP_US) // STEP_US) * STEP_US


def _find_pairs(deferred: Deferrals, seen: SeenObservations) -> tuple[Int64s, Int64s]:
    """Return the messages that were deferred with their nodes, each pair once."""
    messages = masks.find_messages(seen.groups, deferred.at)
    pairs = np.unique(np.stack((messages, seen.node_of[deferred.at].astype(np.int64))), axis=1)
    return pairs[0], pairs[1]


def _find_others(groups: Groups, messages: Int64s, deferred_at: Int64s) -> tuple[Int64s, Int64s]:
    """Return, of each observation of some messages that does not defer, which message it is of, and its place."""
    which, at = masks.find_observations(groups, messages)
    is_other = ~np.isin(at, deferred_at)
    return which[is_other], at[is_other]
