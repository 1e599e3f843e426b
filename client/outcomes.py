"""Outcomes of events, and counts of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class OutcomeResult(Enum):
    """Results of an event."""

    ENTERED = "entered"
    """The stream has it."""
    HELD = "held"
    """The gate has put it into quarantine, for review; the sender is done with it."""
    REJECTED = "rejected"
    """The gate refuses it; it is never sent again."""
    UNSENT = "unsent"
    """The client without a spool was closed before the gate had answered for it."""


class SendOutcome(NamedTuple):
    """Outcome of one event.

    ``status`` is the gate's HTTP status for it, 0 for one without an answer; ``reason`` is one line, empty where the
    event entered. ``event`` is the event as it was sent, JSON with ``id``, ``time`` and ``data``; ``answer`` the
    beginning of what the gate answered about a rejected one, JSON as a rule, at most 1,024 bytes.
    """

    event_id: str
    result: OutcomeResult
    status: int
    reason: str
    event: bytes
    answer: bytes = b""


@dataclass(frozen=True, slots=True)
class ClientCounts:
    """Counts since the client was made; those without a unit in their name count events."""

    accepted: int
    """Events that ``send`` took."""
    recovered: int
    """Events that the spool had from an earlier process, as far as they were read."""
    entered: int
    held: int
    rejected: int
    unsent: int
    unreadable: int
    """Places in the spool that could not be read; each file of them was put aside."""
    repeated: int
    """Events that were sent once more."""
    requests: int
    failed_requests: int
    """Requests after which all or some of the events have to be sent again."""
    waiting_bytes: int
    """Memory, or disk space, of the events that are not settled yet."""
    last_failure: str
    """Reason why the last request has to be sent again, or a part of it; empty if nothing of it has."""
