"""Journey of a message as ``hopwatch find --json`` and the API show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.lookup.missing_messages import MissingMessage
from hopwatch.monitor.results import format_iso


def journey_to_json(message_id: str, stamps: Sequence[MessageStamp], lost: Sequence[MissingMessage]) -> dict[str, Any]:
    """Return the journey of the message that was asked for by this text."""
    return {
        "id": message_id,
        "stamps": [_stamp_to_json(one) for one in stamps],
        "lost": [_lost_to_json(one) for one in lost],
    }


def _lost_to_json(where: MissingMessage) -> dict[str, Any]:
    place = {"stream": where.stream, "window_start": format_iso(where.window_start_us), "node": where.node}
    told = {"message_id": where.shown, "loss": where.loss, "loss_lower": where.loss_lower}
    return place | told | {"stamp_count": where.stamp_count}


def _stamp_to_json(stamp: MessageStamp) -> dict[str, Any]:
    told = stamp._asdict()
    del told["id_kind"], told["text"]
    return told | {"message_id": stamp.shown, "event_time": format_iso(stamp.event_time_us)}
