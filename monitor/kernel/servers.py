"""Servers: the messages beside a counting node by the names of the probes that saw them, in parts that add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Groups
from hopwatch.monitor.kernel.relations import WindowStamps, name_probe, name_server
from hopwatch.monitor.pathway import Pathway
from hopwatch.probes.contract.fingerprints import Fingerprint


class ServerIds(NamedTuple):
    """Distinct messages that the probes of one name saw at a node, or saw leave it: their number and fingerprint."""

    node: int
    has_left: bool
    probe: str
    count: int  # type: ignore[assignment]  # a packet's name, which a tuple has for a method
    id_xor: int
    id_sum: int


def find_servers(
    pathway: Pathway, stamped: WindowStamps, groups: Groups, mixed: NDArray[np.uint64]
) -> tuple[ServerIds, ...]:
    """Return the messages beside the counting nodes of a pathway, by the name of the probes that saw them.

    ``mixed`` has the mix of the id of each message, shape (messages,).
    """
    sides = {(node.before, True) for node in pathway.counting} | {(node.behind, False) for node in pathway.counting}
    sizes = np.diff(groups.starts, append=len(groups.order))
    message = np.empty(len(groups.order), np.int64)
    message[groups.order] = np.repeat(np.arange(len(sizes)), sizes)
    name_of = {instance: name_server(name_probe(instance)) for _, instance in stamped.keys}
    found: list[ServerIds] = []
    for node, has_left in sides:
        probes: dict[str, int] = {}
        number = np.array(
            [probes.setdefault(name_of[one], len(probes)) if at == node else -1 for at, one in stamped.keys], np.int64
        )
        if not probes or node is None:
            continue
        of_observation = np.repeat(number, stamped.counts)
        chosen = of_observation >= 0
        if has_left:
            chosen &= (stamped.code & np.uint8(masks.OUT)).astype(bool)
        # Sorted as numbers: a window may have millions, and to find pairs takes several times as long.
        pairs = np.sort(of_observation[chosen] * len(sizes) + message[chosen])
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        if len(pairs):
            found += _sum_servers(node, list(probes), pairs, mixed, has_left=has_left)
    return tuple(sorted(found))


def _sum_servers(
    node: int, probes: Sequence[str], pairs: NDArray[np.int64], mixed: NDArray[np.uint64], *, has_left: bool
) -> Iterable[ServerIds]:
    """Yield the sums of pairs, in order, of the place of a name and the place of a message."""
    number, message = np.divmod(pairs, len(mixed))
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    xors = np.bitwise_xor.reduceat(mixed[message], starts).tolist()
    sums = np.add.reduceat(mixed[message], starts).tolist()
    counts = np.diff(starts, append=len(pairs)).tolist()
    for place, count, id_xor, id_sum in zip(number[starts].tolist(), counts, xors, sums, strict=True):
        yield ServerIds(node, has_left, probes[place], count, id_xor, id_sum)


def merge_servers(parts: Iterable[ServerIds]) -> tuple[ServerIds, ...]:
    """Add what the shards of a window say, whose messages are apart."""
    found: dict[tuple[int, bool, str], ServerIds] = {}
    for one in parts:
        known = found.get(one[:3])
        if known is not None:
            printed = Fingerprint(*known[4:]).plus(Fingerprint(*one[4:]))
            one = ServerIds(*one[:3], known.count + one.count, *printed)  # noqa: PLW2901
        found[one[:3]] = one
    return tuple(found[key] for key in sorted(found))
