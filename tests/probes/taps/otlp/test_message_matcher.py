"""Messages that were taken in, and those that were sent."""

from __future__ import annotations

from typing import Final

import pytest

from hopwatch.probes.contract.limits import NOT_STAMPED
from hopwatch.probes.taps.otlp import message_matcher
from hopwatch.probes.taps.otlp.message_matcher import HOLD_S, SETTLE_S, MessageMatcher, SpanStamp, UnmatchedMessages
from hopwatch.probes.taps.otlp.message_spans import SentMessage, TakenMessages

ONE, OTHER = bytes([1]) * 24, bytes([2]) * 24
ID: Final = f"{'01' * 16}-{'01' * 8}"


def sent(context: bytes = ONE, left_us: int | None = 7) -> SentMessage:
    """Return a message that was sent at 5."""
    return SentMessage(context, "orders", 5, left_us, (("partition", "1"),))


def taken(*contexts: bytes, operation: str = "process") -> TakenMessages:
    """Return messages that arrived at 20 and were handled at 30."""
    return TakenMessages(contexts or (ONE,), 0, operation, 20, 30, (("group", "g"),))


LEFT: Final = SpanStamp("orders", "shop", ID, 5, NOT_STAMPED, 7, (("partition", "1"),))
ARRIVED: Final = SpanStamp("orders", "billing", ID, 5, 20, 30, (("group", "g"),))


def test_a_message_has_its_event_time_from_its_producer() -> None:
    """And its stream; its id is that of trace and span."""
    matcher = MessageMatcher()
    assert list(matcher.add_sent("shop", sent())) == [LEFT]
    assert list(matcher.add_taken("billing", taken(), 0.0)) == [ARRIVED]


def test_the_span_of_a_consumer_may_come_first() -> None:
    """The span of its producer is waited for."""
    matcher = MessageMatcher()
    assert list(matcher.add_taken("billing", taken(), 0.0)) == []
    assert list(matcher.add_sent("shop", sent())) == [LEFT, ARRIVED]


def test_a_message_whose_sending_failed_is_known_where_it_arrived() -> None:
    """The producer does not know that it left."""
    matcher = MessageMatcher()
    assert list(matcher.add_sent("shop", sent(left_us=None))) == []
    assert list(matcher.add_taken("billing", taken(), 0.0)) == [ARRIVED]


def test_two_spans_of_one_arrival_are_one_stamp() -> None:
    """To receive a message and to process it are one arrival; to process it twice are two."""
    matcher = MessageMatcher()
    list(matcher.add_sent("shop", sent()))
    found = [
        len(list(matcher.add_taken(service, taken(operation=operation), 0.0)))
        for service, operation in [
            ("billing", "process"),
            ("billing", "receive"),
            ("billing", "process"),
            ("audit", "receive"),
        ]
    ]
    assert found == [1, 0, 1, 1]


def test_links_between_consumer_spans_are_no_messages() -> None:
    """The span of a batch links those of its messages."""
    matcher = MessageMatcher()
    list(matcher.add_taken("billing", taken(ONE), 0.0))
    matcher.add_consumer_spans([ONE, OTHER])
    list(matcher.add_taken("billing", taken(OTHER), 0.0))
    assert list(matcher.take_unmatched(HOLD_S)) == []


def test_a_message_without_a_producer_counts_once() -> None:
    """Some seconds later, as its producer's span may be on its way; if it comes later still, it is stamped."""
    matcher = MessageMatcher()
    list(matcher.add_taken("billing", taken(ONE, OTHER), 0.0))
    assert list(matcher.add_sent("shop", sent(OTHER)))
    assert list(matcher.take_unmatched(SETTLE_S - 0.1)) == []
    assert list(matcher.take_unmatched(SETTLE_S)) == [UnmatchedMessages("billing", 1, 20)]
    assert list(matcher.take_unmatched(SETTLE_S)) == []
    assert list(matcher.add_sent("shop", sent())) == [LEFT, ARRIVED]


def test_a_message_is_not_waited_for_without_end() -> None:
    """After some minutes it is forgotten, and was counted before."""
    matcher = MessageMatcher()
    list(matcher.add_taken("billing", taken(), 0.0))
    assert len(list(matcher.take_unmatched(HOLD_S))) == 1
    assert list(matcher.add_sent("shop", sent())) == [LEFT]


def test_a_matcher_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest make room: those that wait count at once, and what was sent before is known no more."""
    monkeypatch.setattr(message_matcher, "MAX_TAKEN", 1)
    monkeypatch.setattr(message_matcher, "MAX_SENT", 1)
    matcher = MessageMatcher()
    list(matcher.add_taken("billing", taken(ONE, OTHER), 0.0))
    assert list(matcher.take_unmatched(0.0)) == [UnmatchedMessages("billing", 1, 20)]
    list(matcher.add_sent("shop", sent(bytes(24))))
    list(matcher.add_sent("shop", sent()))
    assert len(matcher._sent) == 1
    matcher.add_consumer_spans([bytes([3]) * 24, bytes([4]) * 24])
    assert len(matcher._own) == 1
