"""What became of many messages at once, as far as it is kept: one pass over the segments, one over the lost ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor import bounds, held
from hopwatch.monitor.bounds import Part
from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import WindowResult
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NO_REASON, NOT_STAMPED

MOST_IDS: Final = 100_000
"""So many ids are looked for at once."""
MOST_MESSAGES: Final = 10 * MOST_IDS
"""So many messages, each an id in a window of a stream, are kept in memory."""


class Message(NamedTuple):
    """A message of a stream, in the window that it is of, by its start in µs."""

    stream: str
    window_start_us: int
    message_id: bytes


class Fate(NamedTuple):
    """What became of a message, in one word, and at which node; why, where it was stopped with a reason.

    ``part`` says of a missing one where in the loss of its node it is.
    """

    message: Message
    fate: str
    node: str
    reason: str = ""
    part: Part = Part.SOMEWHERE

    @property
    def told(self) -> str:
        """The fate as a sentence tells it."""
        why = f": {self.reason}" if self.reason else ""
        return {
            "lost": bounds.not_seen(self.node, 1, 1, self.part),
            "not seen": bounds.not_seen(self.node, 1, 0, self.part),
            "delivered": f"delivered: it left {self.node}",
            "left": f"left {self.node}, and nothing more is known",
            "arrived": f"arrived at {self.node}, and nothing more is known",
        }.get(self.fate, f"{self.fate} at {self.node}{why}")


class Wanted:
    """Ids that are looked for; many are found in one look at an array of others."""

    def __init__(self, ids: Iterable[bytes]) -> None:
        """Take them."""
        self.ids = frozenset(ids)
        self._folds = np.unique(masks.fold(masks.ids_of(b"".join(self.ids))))

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Return the places of those that are wanted."""
        if not len(self._folds):
            return np.empty(0, np.int64)
        folds = masks.fold(ids)
        near = np.minimum(np.searchsorted(self._folds, folds), len(self._folds) - 1)
        found = np.flatnonzero(self._folds[near] == folds)
        # Two ids may have one fold: the bytes decide.
        mine = [place for place in found.tolist() if ids[place].tobytes() in self.ids]
        return np.array(mine, np.int64)


@dataclass(slots=True)
class Sightings:
    """At which nodes messages were seen: whether each was left, or why a message ended there."""

    wanted: Wanted
    stream: str | None = None
    seen: dict[Message, dict[str, tuple[int, str]]] = field(default_factory=dict)
    is_full: bool = False

    def look_into(self, path: Path) -> None:
        """Take what a segment says of the wanted ids; one that is gone says nothing."""
        data = held.content(path)
        for view in held.records(data):
            if view.count and self.stream in (None, view.stream):
                self._take(data, view)

    def _take(self, data: bytes, view: envelope.RecordView) -> None:
        ids = envelope.read_packed(data, view.message_ids, "<u8").reshape(-1, 2)
        outcomes, reasons = (
            envelope.read_packed(data, view.outcome, "u1"),
            envelope.read_packed(data, view.reason, "u1"),
        )
        lags_out = envelope.read_packed(data, view.lag_out_us, "<i8")
        for place in self.wanted.places(ids).tolist():
            message = Message(view.stream, view.window_start_ms * 1_000, ids[place].tobytes())
            if message not in self.seen and len(self.seen) >= MOST_MESSAGES:
                self.is_full = True
                continue
            outcome = int(outcomes[place]) if len(outcomes) else Outcome.PASSED
            has_left = len(lags_out) > 0 and int(lags_out[place]) != NOT_STAMPED
            reason = int(reasons[place]) if len(reasons) else NO_REASON
            # A higher number says more: arrived, filtered, rejected, left.
            says = _LEFT if outcome == Outcome.PASSED and has_left else int(outcome)
            told = says, "" if reason == NO_REASON else view.reasons[reason]
            at_nodes = self.seen.setdefault(message, {})
            at_nodes[view.node] = max(told, at_nodes.get(view.node, (0, "")))


_LEFT: Final = 3
_WORDS: Final = ("arrived", "filtered", "rejected", "left")


def fates(
    seen: Mapping[Message, Mapping[str, tuple[int, str]]],
    lost: Mapping[Message, Sequence[str]],
    windows: Mapping[tuple[str, int], WindowResult | None],
    pathways: Mapping[str, Pathway],
) -> dict[bytes, list[Fate]]:
    """Return what became of each message, by id: of what was seen, and of what the store has as lost at nodes."""
    found: dict[bytes, list[Fate]] = {}
    for message in sorted({*seen, *lost}):
        window = windows.get((message.stream, message.window_start_us))
        pathway = pathways.get(message.stream)
        at_nodes = seen.get(message, {})
        fate = _lost(message, lost.get(message, ()), window, at_nodes, pathway) or _last(message, at_nodes, pathway)
        found.setdefault(message.message_id, []).append(fate)
    return found


def _lost(
    message: Message,
    nodes: Sequence[str],
    window: WindowResult | None,
    at_nodes: Mapping[str, tuple[int, str]],
    pathway: Pathway | None,
) -> Fate | None:
    if not nodes:
        return None
    surely = {one.node for one in window.nodes if one.loss_lower >= one.loss} if window else set()
    sure = [node for node in nodes if node in surely]
    node = (sure or nodes)[0]
    return Fate(message, "lost" if sure else "not seen", node, part=_part(node, window, at_nodes, pathway))


def _part(
    node: str, window: WindowResult | None, at_nodes: Mapping[str, tuple[int, str]], pathway: Pathway | None
) -> Part:
    """Return where in the loss of a node a message is: by its counts if all are in one part, else by its own stamps."""
    of_node = next((one for one in window.nodes if one.node == node), None) if window else None
    losses = (of_node.lost_in_transit, of_node.lost_inside, of_node.lost_after) if of_node else (0, 0, 0)
    if (part := bounds.part_of(*losses)) is not Part.SOMEWHERE:
        return part
    if node not in at_nodes:
        return Part.ON_THE_WAY if at_nodes else Part.SOMEWHERE
    return Part.AFTER if _has_left(at_nodes[node][0], node, pathway) else Part.INSIDE


def _has_left(says: int, node: str, pathway: Pathway | None) -> bool:
    """Return whether the stamps at a node say that it was left: of a node that stamps one side any stamp does."""
    is_one_sided = pathway is not None and node in pathway.nodes and pathway.stamps[pathway.nodes.index(node)] != "both"
    return says == _LEFT or (says == 0 and is_one_sided)


def _last(message: Message, at_nodes: Mapping[str, tuple[int, str]], pathway: Pathway | None) -> Fate:
    """Return what the stamps say: the end of the way before all, then where it was stopped, then the last node."""
    nodes = pathway.nodes if pathway else ()
    places = {node: place for place, node in enumerate(nodes)}
    ends = {node for place, node in enumerate(nodes) if pathway and pathway.terminals[place]}
    in_order = sorted(at_nodes.items(), key=lambda one: places.get(one[0], -1), reverse=True)
    said = [(node, _LEFT if _has_left(says, node, pathway) else says, reason) for node, (says, reason) in in_order]
    for node, says, _ in said:
        if says == _LEFT and node in ends:
            return Fate(message, "delivered", node)
    for stopped in (Outcome.REJECTED, Outcome.FILTERED):
        for node, says, reason in said:
            if says == stopped:
                return Fate(message, _WORDS[says], node, reason)
    node, says, _ = said[0]
    return Fate(message, _WORDS[says], node)
