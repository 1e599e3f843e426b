"""Settlements: the end of a message in this process, delivered, rejected or deferred."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from hopwatch.deliver.message import DeliveryMessage


class Ending(Enum):
    """Kinds of settlement."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    DEFERRED = "deferred"


class Settlement(NamedTuple):
    """End of a message in this process.

    ``message`` carries the tries that were made. ``status`` is the last answer's, 0 without one; ``reason`` is empty
    for a delivered message; ``body`` is the beginning of the answer that rejected it. ``until_us``, µs since 1970, is
    the earliest next try of a deferred message, 0 for others, and ``tier`` the number of its retry topic, from 0;
    ``finished_us`` is the moment of the last answer.
    """

    message: DeliveryMessage
    ending: Ending
    finished_us: int
    status: int = 0
    reason: str = ""
    body: bytes = b""
    until_us: int = 0
    tier: int = 0
