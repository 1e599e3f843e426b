"""Laws and examples of the queue of batches, and of the bodies that carry them."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.batch_queue import BatchQueue, MessageInHand
from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.policy import BodyFormat, DeliveryPolicy, Order
from hopwatch.deliver.request_body import build_body, find_fault
from hopwatch.deliver.request_builder import RequestBuilder

POLICY = DeliveryPolicy("http://127.0.0.1/", batch_max_events=3, batch_max_bytes=1_000, linger_s=0.05)
ORDERED = dataclasses.replace(POLICY, order=Order.KEY)


def hold(number: int, key: bytes | None = None, value: bytes = b"1", taken_s: float = 0.0) -> MessageInHand:
    """Return a message in hand."""
    return MessageInHand(DeliveryMessage(SourcePosition("t", 0, number), f"m{number}", 7, key, value), taken_s)


def fill(policy: DeliveryPolicy, *messages: MessageInHand) -> BatchQueue:
    """Return a queue of messages."""
    queue = BatchQueue(policy)
    for held in messages:
        queue.add_message(held)
    return queue


def offsets(batch: list[MessageInHand]) -> list[int]:
    """Return the offsets of messages."""
    return [held.message.position.offset for held in batch]


def test_a_batch_is_due_by_count_bytes_or_linger() -> None:
    """A batch is due at the first of its count, its bytes and its linger; an empty queue has nothing due."""
    assert BatchQueue(POLICY).remaining_s(0.0) is None
    assert BatchQueue(POLICY).take_batch() == []
    queue = fill(POLICY, hold(0), hold(1))
    assert queue.remaining_s(0.01) == 0.04
    assert queue.remaining_s(9.0) == 0.0
    queue.add_message(hold(2))
    assert queue.remaining_s(0.01) == 0.0
    assert fill(POLICY, hold(0, value=b"x" * 1_000)).remaining_s(0.01) == 0.0


def test_a_batch_keeps_within_bytes() -> None:
    """A message that is larger than the bound goes alone, and is not held up for ever."""
    queue = fill(POLICY, hold(0, value=b"x" * 500), hold(1, value=b"x" * 500), hold(2, value=b"x" * 5_000), hold(3))
    assert [offsets(queue.take_batch()) for _ in range(5)] == [[0], [1], [2], [3], []]


def test_a_key_has_one_message_under_way() -> None:
    """The next of a key is ready when the one before it is released, once."""
    messages = [hold(0, b"a"), hold(1, b"a"), hold(2, b"b"), hold(3), hold(4, b"a")]
    queue = fill(ORDERED, *messages)
    assert offsets(queue.take_batch()) == [0, 2, 3]
    assert queue.take_batch() == []
    queue.release_key(messages[0])
    queue.release_key(messages[0])
    assert offsets(queue.take_batch()) == [1]
    queue.release_key(messages[1])
    assert offsets(queue.take_batch()) == [4]
    queue.release_key(messages[4])
    queue.add_message(hold(5, b"a"))
    assert offsets(queue.take_batch()) == [5]


def test_removed_messages_leave_the_order_as_it_is() -> None:
    """A key under way stays so, and the others keep their places."""
    messages = [hold(number, key) for number, key in enumerate((b"a", b"a", b"b", b"b", None, b"c"))]
    queue = fill(ORDERED, *messages)
    assert offsets(queue.take_batch()) == [0, 2, 4]
    removed = queue.remove_messages(lambda held: held.message.position.offset in {3, 5})
    assert sorted(offsets(removed)) == [3, 5]
    assert queue.take_batch() == []
    queue.add_message(hold(6, b"c"))
    queue.add_message(hold(7, b"b"))
    assert offsets(queue.take_batch()) == [6]
    queue.release_key(messages[0])
    queue.release_key(messages[2])
    assert sorted(offsets(queue.take_batch())) == [1, 7]


@given(
    st.lists(st.sampled_from((b"a", b"b", b"c", None)), max_size=40),
    st.sampled_from((POLICY, ORDERED)),
    st.lists(st.integers(0, 5), max_size=60),
)
def test_each_message_leaves_once_and_in_order(
    keys: list[bytes | None], policy: DeliveryPolicy, choices: list[int]
) -> None:
    """For any order of releases all messages leave, once, those of a key ascending and, if asked, one at a time."""
    queue, under_way, left = BatchQueue(policy), list[MessageInHand](), list[MessageInHand]()
    for number, key in enumerate(keys):
        queue.add_message(hold(number, key))
    for choice in [*choices, *[0] * 3 * len(keys)]:
        batch = queue.take_batch() if choice % 2 == 0 else []
        assert len(batch) <= policy.batch_max_events
        under_way += batch
        left += batch
        if policy is ORDERED:
            busy = [held.message.key for held in under_way if held.message.key is not None]
            assert len(busy) == len(set(busy))
        if under_way:
            queue.release_key(under_way.pop(choice % len(under_way)))
    for key in (b"a", b"b", b"c"):
        of_key = [held for held in left if held.message.key == key]
        assert offsets(of_key) == sorted(offsets(of_key))
    assert sorted(offsets(left)) == list(range(len(keys)))


@given(st.lists(st.tuples(st.text(min_size=1), st.integers(0, 2**53), st.binary(max_size=9)), min_size=1, max_size=5))
def test_a_list_of_events_holds_each(events: list[tuple[str, int, bytes]]) -> None:
    """Values that are JSON come out of the body as they went in; any other has a fault."""
    messages = [
        DeliveryMessage(SourcePosition("t", 0, at), event_id, event_us, None, value)
        for at, (event_id, event_us, value) in enumerate(events)
    ]
    good = [one for one in messages if not find_fault(one, BodyFormat.EVENTS)]
    for one in messages:
        try:
            json.loads(one.value, parse_constant=lambda _: 1 / 0)
        except (ValueError, ZeroDivisionError):
            assert find_fault(one, BodyFormat.EVENTS)
    if good:
        found = json.loads(build_body(good, BodyFormat.EVENTS).content)
        assert [(one["id"], one["time"]) for one in found] == [(one.message_id, one.event_us) for one in good]
        assert [one["data"] for one in found] == [json.loads(one.value) for one in good]


def test_an_id_that_is_no_text_is_a_fault() -> None:
    """JSON holds no halves of surrogates."""
    message = hold(0).message._replace(message_id="\ud800")
    assert find_fault(message, BodyFormat.EVENTS) == "the id is no text that JSON can hold"


@pytest.mark.parametrize(
    ("headers", "content_type"),
    [
        ((), "application/octet-stream"),
        ((("Content-Type", b"application/avro"),), "application/avro"),
        ((("content-type", b"a\r\nX: 1"),), "application/octet-stream"),
        ((("content-type", b"\xff"),), "application/octet-stream"),
    ],
)
def test_a_single_value_goes_as_it_is(headers: tuple[tuple[str, bytes], ...], content_type: str) -> None:
    """With the type that its producer gave it, if a header can hold that, its id and its time."""
    policy = DeliveryPolicy(
        "http://127.0.0.1/", headers=(("X-Team", "a"),), body_format=BodyFormat.VALUE, batch_max_events=1
    )
    message = hold(0).message._replace(value=b"\x00\xff", headers=headers)
    assert find_fault(message, BodyFormat.VALUE) == ""
    request = RequestBuilder(policy).build_request([message], 0)
    assert request.body == b"\x00\xff"
    assert request.headers == {
        "X-Team": "a",
        "Content-Type": content_type,
        "Idempotency-Key": "m0",
        "webhook-id": "m0",
        "hopwatch-time": "7",
    }


def test_a_signed_request_has_its_three_headers() -> None:
    """The secret is checked when the builder is made."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - of the published vector
    builder = RequestBuilder(dataclasses.replace(POLICY, signing_secrets=(secret,)))
    headers = builder.build_request([hold(0).message], 1_700_000_000_999_999).headers
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("m0", "1700000000")
    assert headers["webhook-signature"].startswith("v1,")
    with pytest.raises(ValueError, match="a signing secret begins with"):
        RequestBuilder(dataclasses.replace(POLICY, signing_secrets=("x",)))
