"""Messages that are proven lost at a node, each with the last node that wrote it, and why others are not proven."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Engine

from hopwatch.monitor.kernel import naming
from hopwatch.monitor.lookup.fates import MAX_MESSAGES, WantedIds
from hopwatch.monitor.lookup.journey import has_left
from hopwatch.monitor.lookup.missing_messages import build_stamps
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.store import lost_messages, pathway_versions, reader, schema
from hopwatch.monitor.store.lost_messages import LostMessage


class LossQuestion(NamedTuple):
    """Question for what is lost at a node: in windows that start in ``[from_us, to_us)``, of wanted ids or of all."""

    stream: str
    node: str
    from_us: int | None = None
    to_us: int | None = None
    wanted: WantedIds | None = None


class ProvenLoss(NamedTuple):
    """Message that is surely lost at the node, and the node that it was last seen to leave."""

    window_start_us: int
    message_id: bytes
    shown: str
    """Its id as it was given."""
    source: str


class UnprovenLoss(NamedTuple):
    """Messages of a window that are not sent again, with the reason; of one message its id, too.

    The window is None of an id that no window lists.
    """

    window_start_us: int | None
    missing: int
    reason: str
    shown: str = ""


@dataclass(slots=True)
class NodeLosses:
    """Losses at a node: those that are proven, and those that are not."""

    proven: list[ProvenLoss] = field(default_factory=list)
    unproven: list[UnprovenLoss] = field(default_factory=list)
    listed: set[bytes] = field(default_factory=set)
    """Ids that the store lists as missing there, proven or not, of those that were wanted."""


def find_proven_losses(engine: Engine, question: LossQuestion, most: int = MAX_MESSAGES) -> NodeLosses:
    """Find the messages that are proven lost: all that are missing in their window at the node surely are.

    Where only some of them surely are lost, nobody knows which: none is proven. The first window with which there are
    more than ``most`` ends it.

    Raises:
        StoreError: the store cannot be read.
    """
    found = NodeLosses()
    with schema.open_snapshot(engine) as connection:
        config = pathway_versions.read_stream(connection, question.stream)
        where = question.stream, question.node, question.from_us, question.to_us
        for row in lost_messages.read_node_losses(connection, *where):
            if config is not None:
                _note_window(row, question, config.at(row.window_start_us).pathway, found)
            if len(found.proven) > most:
                break
    return found


def count_recovered(engine: Engine, stream: str, node: str, messages: Mapping[int, AbstractSet[bytes]]) -> int:
    """Count which of some messages, by window, are missing at a node no more; what is not kept is not counted.

    Raises:
        StoreError: the store cannot be read.
    """
    recovered = 0
    with schema.open_snapshot(engine) as connection:
        for start_us, missing, listed in lost_messages.read_listed_ids(connection, stream, node, sorted(messages)):
            # Of more than are listed, the others may be any.
            if missing == len(listed):
                recovered += len(messages[start_us] - set(listed))
    return recovered


def find_window_gap(engine: Engine, stream: str, window_start_us: int) -> str:
    """Return why nothing can be said of a window: it is not kept or not judged; empty if it is judged.

    Raises:
        StoreError: the store cannot be read.
    """
    with schema.open_snapshot(engine) as connection:
        window = reader.read_window(connection, stream, window_start_us)
    if window is None:
        return "the store does not have this window"
    return "" if window.status.is_final else f"the window is {window.status}, and what is lost in it is not judged yet"


def _list_sources(pathway: Pathway, node: str) -> dict[str, str]:
    """Return the nodes that may have written what a node lost, the nearest first, with the sides that they stamp."""
    place = pathway.nodes.index(node)
    upstream = [int(one) for one in np.flatnonzero(pathway.downstream[:, place])]
    # The node itself wrote what it lost after it left.
    return {pathway.nodes[one]: pathway.stamps[one] for one in (place, *reversed(upstream))}


def _note_window(row: Any, question: LossQuestion, pathway: Pathway, found: NodeLosses) -> None:  # noqa: ANN401 - a row
    start_us, missing, lower = row.window_start_us, row.loss, row.loss_lower
    messages = [] if row.message_ids is None else list(_select_messages(row, question.wanted))
    found.listed.update(message_id for message_id, _ in messages)
    count = missing if question.wanted is None else len(messages)
    if lower < missing:
        if count:
            known = f"of {missing:,} that are missing here {lower:,} are surely lost"
            why = f"UNKNOWN: {known}, and nobody knows which" if lower else f"UNKNOWN: {known}"
            found.unproven.append(UnprovenLoss(start_us, count, why))
        return
    sources = _list_sources(pathway, question.node)
    for message_id, stored in messages:
        shown = naming.format_id(message_id, stored.kind, stored.text)
        source, why = _find_source(message_id, stored, question.stream, sources)
        if source:
            found.proven.append(ProvenLoss(start_us, message_id, shown, source))
        else:
            found.unproven.append(UnprovenLoss(start_us, 1, why, shown))
    if question.wanted is None and missing > len(messages):
        why = "they are lost, and the store does not list their ids: max_lost_ids of the stream says how many it lists"
        found.unproven.append(UnprovenLoss(start_us, missing - len(messages), why))


def _select_messages(row: Any, wanted: WantedIds | None) -> Iterator[tuple[bytes, LostMessage]]:  # noqa: ANN401 - a row
    for message_id, stored in lost_messages.read_messages(row):
        if wanted is None or message_id in wanted.ids:
            yield message_id, stored


def _find_source(message_id: bytes, stored: LostMessage, stream: str, sources: Mapping[str, str]) -> tuple[str, str]:
    """Return the last node that a message was seen to leave, or why none is known."""
    if stored.stamp_count is None:
        return "", "its stamps are not kept, and with them the node that it left last"
    stamps = build_stamps(message_id, stream, stored)
    left = {one.node for one in stamps if one.node in sources and has_left(one, sources[one.node])}
    source = next((node for node in sources if node in left), "")
    return source, "" if source else "it was not seen to leave a node before: only its sender can send it again"
