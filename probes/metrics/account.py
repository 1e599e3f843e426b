"""Account of a component, of all that it is given: received = emitted + dropped + refused + in flight."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Self


class EventOutcome(StrEnum):
    """Outcome of an event, or of a request, that was received."""

    EMITTED = "emitted"
    DROPPED = "dropped"
    REFUSED = "refused"
    ANSWERED = "answered"


class Output(StrEnum):
    """Place that an event went to."""

    STREAM = "stream"
    QUARANTINE = "quarantine"
    STAMPS = "stamps"
    RECEIVER = "receiver"
    RETRY = "retry"


class DropReason(StrEnum):
    """Reason for which nothing was done with an event or a request; taps have others of their own."""

    REPEAT = "repeat"
    NO_ANSWER = "no_answer"


class RefusalReason(StrEnum):
    """Reason for which an event was given back to whoever has it: it may be sent, or read, again."""

    BUSY = "busy"
    THROTTLED = "throttled"
    BATCH = "batch"
    REJECTED = "rejected"
    UNKNOWN_NODE = "unknown_node"
    NOT_WRITTEN = "not_written"
    INTERRUPTED = "interrupted"


OutcomeLabel = tuple[EventOutcome, str]
"""A settlement, and its output, reason or status code."""

GATE_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.EMITTED, Output.STREAM),
    (EventOutcome.EMITTED, Output.QUARANTINE),
    (EventOutcome.DROPPED, DropReason.REPEAT),
    (EventOutcome.REFUSED, RefusalReason.BUSY),
    (EventOutcome.REFUSED, RefusalReason.THROTTLED),
    (EventOutcome.REFUSED, RefusalReason.BATCH),
    (EventOutcome.REFUSED, RefusalReason.REJECTED),
    (EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN),
    (EventOutcome.REFUSED, RefusalReason.INTERRUPTED),
)
VALIDATOR_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.EMITTED, Output.STREAM),
    (EventOutcome.EMITTED, Output.QUARANTINE),
    (EventOutcome.EMITTED, Output.RETRY),
    (EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN),
    (EventOutcome.REFUSED, RefusalReason.INTERRUPTED),
)
DELIVERY_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.EMITTED, Output.RECEIVER),
    (EventOutcome.EMITTED, Output.QUARANTINE),
    (EventOutcome.EMITTED, Output.RETRY),
    (EventOutcome.REFUSED, RefusalReason.INTERRUPTED),
)
TAP_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.EMITTED, Output.STAMPS),
    (EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN),
)
REQUEST_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.ANSWERED, "200"),
    (EventOutcome.DROPPED, DropReason.NO_ANSWER),
)
HTTP_TAP_OUTCOMES: tuple[OutcomeLabel, ...] = (
    (EventOutcome.EMITTED, Output.STAMPS),
    (EventOutcome.REFUSED, RefusalReason.REJECTED),
    (EventOutcome.REFUSED, RefusalReason.UNKNOWN_NODE),
    (EventOutcome.REFUSED, RefusalReason.NOT_WRITTEN),
    (EventOutcome.REFUSED, RefusalReason.INTERRUPTED),
)


@dataclass(frozen=True, slots=True)
class AccountSnapshot:
    """An account at one moment."""

    received: int
    settled: Mapping[OutcomeLabel, int]

    @property
    def in_flight(self) -> int:
        """Number of those whose outcome is open."""
        return self.received - sum(self.settled.values())

    def total(self, outcome: EventOutcome, label: str | None = None) -> int:
        """Return the number with an outcome, of all its labels or of one."""
        return sum(count for (of, named), count in self.settled.items() if of is outcome and label in (None, named))


class Account:
    """Account of one component, and one stream where it has several; thread-safe."""

    def __init__(self, expected: Iterable[OutcomeLabel] = ()) -> None:
        """Start empty; ``expected`` outcomes are there from the beginning, as 0."""
        self._received = 0
        self._settled: Counter[OutcomeLabel] = Counter(dict.fromkeys(expected, 0))
        self._lock = threading.Lock()

    def receive(self, count: int) -> None:
        """Count what arrived: in flight until it is settled."""
        with self._lock:
            self._received += count

    def open_receipt(self, count: int) -> Receipt:
        """Count what arrived, and return the receipt under which it is settled or handed on."""
        self.receive(count)
        return Receipt(self, count)

    def emit(self, count: int, output: Output) -> None:
        """Settle as acknowledged by where it went."""
        self.settle(count, EventOutcome.EMITTED, output)

    def drop(self, count: int, reason: StrEnum) -> None:
        """Settle as passed over: nobody is asked to send it again."""
        self.settle(count, EventOutcome.DROPPED, reason)

    def refuse(self, count: int, reason: RefusalReason) -> None:
        """Settle as given back to whoever has it."""
        self.settle(count, EventOutcome.REFUSED, reason)

    def settle(self, count: int, outcome: EventOutcome, label: str) -> None:
        """Settle so many with an outcome; none is no news."""
        if count:
            with self._lock:
                self._settled[outcome, label] += count

    def snapshot(self) -> AccountSnapshot:
        """Return the account as it stands: its parts are of the same moment."""
        with self._lock:
            return AccountSnapshot(self._received, dict(self._settled))


@dataclass(slots=True)
class Receipt:
    """Receipt of one call; whatever it has neither settled nor handed on when it ends counts as interrupted.

    Used by one thread.
    """

    account: Account
    left: int

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Settle the rest, such as after an error."""
        self.account.refuse(self.left, RefusalReason.INTERRUPTED)
        self.left = 0

    def hand_on(self, count: int) -> None:
        """Leave so many to a callback, which settles them in the account."""
        self.left -= count

    def emit(self, count: int, output: Output) -> None:
        """Settle so many as emitted."""
        self.left -= count
        self.account.emit(count, output)

    def drop(self, count: int, reason: StrEnum) -> None:
        """Settle so many as dropped."""
        self.left -= count
        self.account.drop(count, reason)

    def refuse(self, count: int, reason: RefusalReason) -> None:
        """Settle so many as refused."""
        self.left -= count
        self.account.refuse(count, reason)


@dataclass(frozen=True, slots=True)
class ComponentAccounts:
    """Accounts of one component: of events by stream, the name empty where it has no single one, and of requests."""

    component: str
    events: Mapping[str, Account] = field(default_factory=dict)
    requests: Account | None = None
