"""The order of messages on a hop, pair by pair."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tests.model.pathway import Pathway
from tests.model.record import DEFERRED, Observation
from tests.model.wire import Received

FAR_US = 2**61

Stamped = tuple[tuple[str, int], int]
"""Probe instance and moment of a stamp, µs since 1970."""


def displacements(pathway: Pathway, node: str, inside: Sequence[Received]) -> list[int]:
    """Give for each message that is compared on a hop to N by how many it was overtaken."""
    return [
        count
        for source in pathway.nodes
        if node in pathway.next_nodes(source)
        for count in _displacements_of_hop(
            _stamps(pathway, source, inside, "out"), _stamps(pathway, node, inside, "in")
        )
    ]


def _displacements_of_hop(left: dict[bytes, list[Stamped]], came: dict[bytes, list[Stamped]]) -> Iterable[int]:
    lanes: dict[tuple[object, object], list[tuple[int, int]]] = defaultdict(list)
    for message_id in left.keys() & came.keys():
        if len(left[message_id]) == len(came[message_id]) == 1:
            (source, left_us), (target, came_us) = left[message_id][0], came[message_id][0]
            lanes[source, target].append((left_us, came_us))
    for of_lane in lanes.values():
        yield from overtakers(of_lane)


def overtakers(of_lane: Sequence[tuple[int, int]]) -> list[int]:
    """Give for each message of a lane, which left and came then, how many left after it and came before it."""
    return [sum(left_us > own[0] and came_us < own[1] for left_us, came_us in of_lane) for own in of_lane]


def _stamps(pathway: Pathway, node: str, inside: Sequence[Received], side: str) -> dict[bytes, list[Stamped]]:
    """Give the stamps of one side at a node by message."""
    found: dict[bytes, list[Stamped]] = defaultdict(list)
    for one in inside:
        for seen in one.batch.observations if one.batch.node == node else ():
            lag_us = _lag_us(seen, side, one_sided=node in pathway.one_sided)
            is_stamp = seen.passed if side == "out" else seen.outcome != DEFERRED
            if lag_us is not None and is_stamp:
                moment_us = one.window_us + seen.event_offset_us + lag_us
                at_us = max(-FAR_US, min(moment_us, FAR_US))
                found[seen.message_id].append(((one.batch.probe, one.batch.epoch_us), at_us))
    return found


def _lag_us(seen: Observation, side: str, *, one_sided: bool) -> int | None:
    own, other = (seen.lag_out_us, seen.lag_in_us) if side == "out" else (seen.lag_in_us, seen.lag_out_us)
    return other if own is None and one_sided else own
