"""Tests of the receiver that counts: over real sockets, in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

from bench.delivery.programs import CountingReceiver
from bench.delivery.receiver import MessageCounter


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[CountingReceiver]:
    """Yield a receiver of ten messages that answers after 50 ms."""
    running = CountingReceiver(tmp_path, 0.05, 10)
    yield running
    running.stop()


def encode_body(*numbers: int) -> bytes:
    """Return the body that carries these messages."""
    return orjson.dumps([{"id": str(number), "time": 1, "data": {}} for number in numbers])


def test_a_request_is_counted_and_answered_after_the_wait(receiver: CountingReceiver) -> None:
    """Requests of one connection are answered one after the other, and a message that comes again is none more."""
    connection = HTTPConnection(urlsplit(receiver.url).netloc, timeout=20)
    begun_s = time.monotonic()
    for body in (encode_body(1, 2), encode_body(2, 3)):
        connection.request("POST", "/events", body)
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    took_s = time.monotonic() - begun_s
    connection.close()
    counts = receiver.read_counts()
    assert (counts.messages, counts.distinct, counts.requests) == (4, 3, 2)
    assert begun_s < counts.first_s < counts.last_s < counts.now_s
    assert took_s >= 0.1


def test_nothing_came_before_the_first_request(receiver: CountingReceiver) -> None:
    """Without a request all counts are 0, and there is no first moment."""
    counts = receiver.read_counts()
    assert (counts.messages, counts.distinct, counts.requests, counts.first_s) == (0, 0, 0, 0.0)


def test_a_message_that_is_not_known_is_no_message() -> None:
    """A number beyond those that were sent is refused."""
    with pytest.raises(IndexError):
        MessageCounter(3).add_request(encode_body(3))
