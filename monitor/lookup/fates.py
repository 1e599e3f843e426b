"""Fates of many messages: one pass over the segments, and one over the lost ids of the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel import masks
from hopwatch.monitor.kernel.masks import Ids
from hopwatch.monitor.lookup import segment_records
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.loss_bounds import LossPart
from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.limits import NO_REASON, NOT_STAMPED

MAX_IDS: Final = 100_000
"""Ids in one search at most."""
MAX_MESSAGES: Final = 10 * MAX_IDS
"""Messages, each an id in a window of a stream, that are kept in memory at most."""


class MessageKey(NamedTuple):
    """Key of a message: its stream, the start of its window in µs, and its id."""

    stream: str
    window_start_us: int
    message_id: bytes


class Fate(NamedTuple):
    """Fate of a message in one word, the node where it happened, and the reason if there is one.

    ``part`` says of a missing one where in the loss of its node it is.
    """

    message: MessageKey
    fate: str
    node: str
    reason: str = ""
    part: LossPart = LossPart.SOMEWHERE

    @property
    def description(self) -> str:
        """The fate as part of a sentence."""
        why = f": {self.reason}" if self.reason else ""
        return {
            "lost": loss_bounds.describe_missing(self.node, 1, 1, self.part),
            "not seen": loss_bounds.describe_missing(self.node, 1, 0, self.part),
            "delivered": f"delivered: it left {self.node}",
            "left": f"left {self.node}, and nothing more is known",
            "arrived": f"arrived at {self.node}, and nothing more is known",
        }.get(self.fate, f"{self.fate} at {self.node}{why}")


class WantedIds:
    """Set of wanted ids that finds its members in an array of ids at once."""

    def __init__(self, ids: Iterable[bytes]) -> None:
        """Take them."""
        self.ids = frozenset(ids)
        self._folds = np.unique(masks.fold(masks.ids_from_bytes(b"".join(self.ids))))

    def places(self, ids: Ids) -> NDArray[np.int64]:
        """Return the indexes of the wanted ids."""
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
    """Sightings of messages by node: whether a message left the node, or the reason why it ended there."""

    wanted: WantedIds
    stream: str | None = None
    seen: dict[MessageKey, dict[str, tuple[int, str]]] = field(default_factory=dict)
    is_full: bool = False

    def look_into(self, path: Path) -> None:
        """Note the observations of the wanted ids in a segment; a segment that is gone has none."""
        data = segment_records.read_segment(path)
        for view in segment_records.parse_records(data):
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
            message = MessageKey(view.stream, view.window_start_ms * 1_000, ids[place].tobytes())
            if message not in self.seen and len(self.seen) >= MAX_MESSAGES:
                self.is_full = True
                continue
            outcome = int(outcomes[place]) if len(outcomes) else Outcome.PASSED
            has_left = len(lags_out) > 0 and int(lags_out[place]) != NOT_STAMPED
            reason = int(reasons[place]) if len(reasons) else NO_REASON
            says = _LEFT if outcome == Outcome.PASSED and has_left else _SAYS.index(outcome)
            told = says, "" if reason == NO_REASON else view.reasons[reason]
            at_nodes = self.seen.setdefault(message, {})
            at_nodes[view.node] = max(told, at_nodes.get(view.node, (0, "")))


_SAYS: Final = (Outcome.PASSED, Outcome.DEFERRED, Outcome.FILTERED, Outcome.REJECTED)
"""Outcomes by what they say of the end of a message: a higher place says more, and a departure most."""
_LEFT: Final = len(_SAYS)
_WORDS: Final = ("arrived", "deferred", "filtered", "rejected", "left")


def decide_fates(
    seen: Mapping[MessageKey, Mapping[str, tuple[int, str]]],
    lost: Mapping[MessageKey, Sequence[str]],
    windows: Mapping[tuple[str, int], WindowResult | None],
    configs: Mapping[str, StreamConfig],
) -> dict[bytes, list[Fate]]:
    """Return the fates of messages by id, from their sightings and from the losses in the store."""
    found: dict[bytes, list[Fate]] = {}
    for message in sorted({*seen, *lost}):
        window = windows.get((message.stream, message.window_start_us))
        config = configs.get(message.stream)
        pathway = config.at(message.window_start_us).pathway if config else None
        at_nodes = seen.get(message, {})
        fate = _fate_by_loss(message, lost.get(message, ()), window, at_nodes, pathway) or _fate_by_stamps(
            message, at_nodes, pathway
        )
        found.setdefault(message.message_id, []).append(fate)
    return found


def _fate_by_loss(
    message: MessageKey,
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
    return Fate(message, "lost" if sure else "not seen", node, part=_find_part(node, window, at_nodes, pathway))


def _find_part(
    node: str, window: WindowResult | None, at_nodes: Mapping[str, tuple[int, str]], pathway: Pathway | None
) -> LossPart:
    """Return where in the loss of a node a message is: by its counts if all are in one part, else by its own stamps."""
    of_node = next((one for one in window.nodes if one.node == node), None) if window else None
    losses = (of_node.lost_in_transit, of_node.lost_inside, of_node.lost_after) if of_node else (0, 0, 0)
    if (part := loss_bounds.find_loss_part(*losses)) is not LossPart.SOMEWHERE:
        return part
    if node not in at_nodes:
        return LossPart.ON_THE_WAY if at_nodes else LossPart.SOMEWHERE
    return LossPart.AFTER if _has_left(at_nodes[node][0], node, pathway) else LossPart.INSIDE


def _has_left(says: int, node: str, pathway: Pathway | None) -> bool:
    """Return whether the stamps at a node say that it was left: of a node that stamps one side any stamp does."""
    is_one_sided = pathway is not None and node in pathway.nodes and pathway.stamps[pathway.nodes.index(node)] != "both"
    return says == _LEFT or (says == 0 and is_one_sided)


def _fate_by_stamps(message: MessageKey, at_nodes: Mapping[str, tuple[int, str]], pathway: Pathway | None) -> Fate:
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
            if says == _SAYS.index(stopped):
                return Fate(message, _WORDS[says], node, reason)
    node, says, reason = said[0]
    return Fate(message, _WORDS[says], node, reason if says == _SAYS.index(Outcome.DEFERRED) else "")
