"""Matching of messages that were taken in with those that were sent, by their creation contexts.

The span of a consumer tells neither the event time of its message nor where it was sent to; that of the producer does.
Either of them may come first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from hopwatch.probes.contract.limits import NOT_STAMPED
from hopwatch.probes.packing import Labels
from hopwatch.probes.taps.otlp.message_spans import SentMessage, TakenMessages

MAX_SENT: Final = 250_000
"""Messages that are remembered because they were sent, at most, some 160 MB: the oldest make room."""
MAX_TAKEN: Final = 200_000
"""Messages that wait for the span of their producer, at most, some 130 MB: the oldest make room."""
HOLD_S: Final = 600.0
"""Time that they wait at most."""
SETTLE_S: Final = 10.0
"""Time after which they count as missing: the SDK of their producer sends its spans every 5 s."""


class SpanStamp(NamedTuple):
    """Stamp of a message at a node; moments in µs since 1970, NOT_STAMPED where absent."""

    stream: str
    node: str
    message_id: str
    event_us: int
    in_us: int
    out_us: int
    labels: Labels


class UnmatchedMessages(NamedTuple):
    """Messages that a service took in and that cannot be stamped, and when, in µs since 1970.

    They may be of any stream: a span of several messages names the destination of one.
    """

    service: str
    number: int
    at_us: int


class _Sent(NamedTuple):
    message: SentMessage
    # By service the operation whose span was stamped: a span of another one is of the same arrival.
    takers: dict[str, str]


@dataclass(slots=True)
class _Taken:
    service: str
    taken: TakenMessages
    since_s: float
    is_counted: bool = False


class MessageMatcher:
    """Matcher of sent and taken messages; not thread-safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._sent: OrderedDict[bytes, _Sent] = OrderedDict()
        self._taken: OrderedDict[bytes, list[_Taken]] = OrderedDict()
        self._own: OrderedDict[bytes, None] = OrderedDict()
        # Messages that wait and do not count as missing yet, the oldest first; some may be matched by now.
        self._fresh: deque[tuple[bytes, _Taken]] = deque()
        self._overflow: list[_Taken] = []

    def add_sent(self, service: str, sent: SentMessage) -> Iterator[SpanStamp]:
        """Add a message that a service sent; yield its stamp, and those of services that took it in already."""
        entry = self._sent.setdefault(sent.context, _Sent(sent, {}))
        if len(self._sent) > MAX_SENT:
            self._sent.popitem(last=False)
        if sent.left_us is not None:
            yield SpanStamp(
                sent.destination,
                service,
                _format_id(sent.context),
                sent.event_us,
                NOT_STAMPED,
                sent.left_us,
                sent.labels,
            )
        for waiting in self._taken.pop(sent.context, ()):
            yield from _stamp_taken(entry, waiting.service, waiting.taken)

    def add_taken(self, service: str, taken: TakenMessages, now_s: float) -> Iterator[SpanStamp]:
        """Add the messages that a service took in; yield the stamps of those that are known to be sent."""
        for context in taken.contexts:
            entry = self._sent.get(context)
            if entry is not None:
                yield from _stamp_taken(entry, service, taken)
                continue
            if context in self._own:
                continue
            waiting = _Taken(service, taken, now_s)
            self._taken.setdefault(context, []).append(waiting)
            self._fresh.append((context, waiting))
            if len(self._taken) > MAX_TAKEN:
                self._overflow.extend(self._taken.popitem(last=False)[1])

    def add_consumer_spans(self, contexts: Iterable[bytes]) -> None:
        """Add contexts of consumer spans themselves: links between them are of no message."""
        for context in contexts:
            self._own[context] = None
            self._taken.pop(context, None)
        while len(self._own) > MAX_TAKEN:
            self._own.popitem(last=False)

    def take_unmatched(self, now_s: float) -> Iterator[UnmatchedMessages]:
        """Yield the messages that count as missing from now on, each once; they may be matched later nevertheless."""
        for one in self._overflow:
            yield from _count_unmatched(one)
        self._overflow.clear()
        while self._fresh and now_s - self._fresh[0][1].since_s >= SETTLE_S:
            context, one = self._fresh.popleft()
            if any(waiting is one for waiting in self._taken.get(context, ())):
                yield from _count_unmatched(one)
        while self._taken:
            context, waiting = next(iter(self._taken.items()))
            if now_s - waiting[0].since_s < HOLD_S:
                return
            del self._taken[context]


def _stamp_taken(entry: _Sent, service: str, taken: TakenMessages) -> Iterator[SpanStamp]:
    if entry.takers.setdefault(service, taken.operation) != taken.operation:
        return
    sent = entry.message
    out_us = NOT_STAMPED if taken.handled_us is None else taken.handled_us
    yield SpanStamp(
        sent.destination, service, _format_id(sent.context), sent.event_us, taken.arrived_us, out_us, taken.labels
    )


def _format_id(context: bytes) -> str:
    return f"{context[:16].hex()}-{context[16:].hex()}"


def _count_unmatched(one: _Taken) -> Iterator[UnmatchedMessages]:
    if not one.is_counted:
        one.is_counted = True
        yield UnmatchedMessages(one.service, 1, one.taken.arrived_us)
