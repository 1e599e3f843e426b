"""Messages that are to be delivered."""

from __future__ import annotations

from typing import NamedTuple


class SourcePosition(NamedTuple):
    """Position of a message in its source."""

    topic: str
    partition: int
    offset: int


class DeliveryMessage(NamedTuple):
    """Message to deliver.

    ``message_id`` is the id as its producer gave it; ``event_us`` and ``first_sent_us`` are µs since 1970;
    ``tries`` counts the requests that carried it before, over all tiers, and ``first_sent_us`` is 0 before the first.
    """

    position: SourcePosition
    message_id: str
    event_us: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()
    tries: int = 0
    first_sent_us: int = 0
