"""Reconciliation: what the probes of a counting node counted, beside the ids of probes of the same names.

It says where counts and ids differ, by the definitions of SEMANTICS.md, "Server by server"; it bounds no loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.kernel.journeys import MAX_STAMPS
from hopwatch.monitor.kernel.packets import Packet
from hopwatch.monitor.kernel.relations import name_server
from hopwatch.monitor.kernel.servers import ServerIds
from hopwatch.monitor.kernel.tally import LostIds
from hopwatch.monitor.results import ServerCount
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NOT_STAMPED

MAX_SHOWN: Final = 2**63 - 1
"""Counts beyond that are shown as that."""
MAX_SERVERS: Final = 1_000
"""Names of probes that are listed at most: those that differ from a neighbour first, and then in order."""
MAX_MISSING_IDS: Final = 10
"""Missing ids that are listed for a name at most, the first in byte order."""


class CountedServer(NamedTuple):
    """Messages that the probes of one name counted as they arrived, and as they departed."""

    arrived: Packet
    departed: Packet


class ServersBeside(NamedTuple):
    """Ids beside a counting node by the names of probes: what left the node before, and what the one behind saw.

    Either is empty without a neighbour, or where no name is that of a probe which counted. ``missing`` are messages
    that left the node before and are missing at the one behind; None where nobody can say. ``is_alone`` says that all
    that comes to the node behind passes the one that counts.
    """

    left: Mapping[str, Packet]
    seen: Mapping[str, Packet]
    missing: Mapping[str, Sequence[str]] | None
    is_alone: bool


def select_servers(
    servers: Iterable[ServerIds], node: int | None, counted: Iterable[str], *, has_left: bool
) -> dict[str, Packet]:
    """Return what the probes of each name saw at a node, or saw leave it; nothing if none of them has counted too."""
    found = {
        one.probe: Packet(one.count, one.id_xor, one.id_sum, 0, one.count)
        for one in servers
        if one.node == node and one.has_left == has_left
    }
    return found if found.keys() & set(counted) else {}


def find_missing(lost: LostIds, before: str, behind: str, *, is_one_sided: bool) -> dict[str, list[str]] | None:
    """Return the messages that left a node and are missing at another, by the name of the probes that let them go.

    None where not all stamps were kept. ``is_one_sided`` says of the node before that any stamp counts for both sides.
    """
    if not len(lost.message_ids):
        return {}
    if not lost.journeys.packed:
        return None
    table = lost.journeys.table()
    if ((table.counts == 0) | (table.counts > MAX_STAMPS)).any():
        return None
    stamps, message = table.stamps, np.repeat(np.arange(len(table.counts)), table.counts)
    here, there = (stamps["node"] == _place(table.words, node) for node in (before, behind))
    here &= stamps["outcome"] == Outcome.PASSED
    if not is_one_sided:
        here &= stamps["lag_out_us"] != NOT_STAMPED
    here &= ~np.isin(message, message[there])
    places: dict[str, int] = {}
    server = np.array([places.setdefault(name_server(word), len(places)) for word in table.words], np.int64)
    names = list(places)
    pairs = np.unique(server[stamps["probe"][here]] * len(table.counts) + message[here])
    found: dict[str, list[str]] = {}
    for number, place in zip(*(part.tolist() for part in np.divmod(pairs, len(table.counts))), strict=True):
        shown = lost.message_ids[place].tobytes(), int(lost.names.kinds[place]), lost.names.texts[place]
        found.setdefault(names[number], []).append(naming.format_id(*shown))
    return found


def compare_servers(counted: Mapping[str, CountedServer], beside: ServersBeside) -> tuple[ServerCount, ...]:
    """Return what was counted by the name of probes, beside the ids of probes of the same name."""
    names = {*counted, *beside.left, *beside.seen}
    told = [_compare_server(name, counted.get(name), beside) for name in names]
    told.sort(key=lambda one: (not _is_apart(one, beside), one.probe))
    return tuple(sorted(told[:MAX_SERVERS], key=lambda one: one.probe))


def _compare_server(name: str, counted: CountedServer | None, beside: ServersBeside) -> ServerCount:
    left, seen = beside.left.get(name), beside.seen.get(name)
    missing = None if beside.missing is None or left is None else beside.missing.get(name, ())
    return ServerCount(
        probe=name,
        count=None if counted is None else min(counted.arrived.count, MAX_SHOWN),
        departed=None if counted is None else min(counted.departed.count, MAX_SHOWN),
        left_before=None if left is None else left.count,
        same_before=None if counted is None or left is None else counted.arrived.matches(left),
        seen_behind=None if seen is None else seen.count,
        same_behind=None if counted is None or seen is None or not beside.is_alone else counted.departed.matches(seen),
        missing_behind=None if missing is None else len(missing),
        missing_ids=() if missing is None else tuple(missing[:MAX_MISSING_IDS]),
    )


def _is_apart(one: ServerCount, beside: ServersBeside) -> bool:
    """Return whether counts and ids of a name differ, or some are missing."""
    is_fewer = (bool(beside.left) and one.count != one.left_before) or (
        bool(beside.seen) and one.departed != one.seen_behind
    )
    return is_fewer or bool(one.missing_behind) or False in (one.same_before, one.same_behind)


def _place(words: Sequence[str], word: str) -> int:
    return words.index(word) if word in words else -1
