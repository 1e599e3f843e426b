"""Tests of the sender: requests go out at their moments, whatever becomes of those before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np
import orjson
import pytest

from hopwatch.deliver.answers import Answer, AttemptResult, NoAnswer
from hopwatch.rate.entrance import Entrance, EntranceError, StepLoad, StepSending
from hopwatch.rate.message_ids import find_places
from hopwatch.rate.schedule import group_requests

RUN = 12_345


class SlowPoster:
    """Entrance that answers each request after a time, with the next answer of some in turn."""

    def __init__(self, wait_s: float, answers: Sequence[Answer | NoAnswer]) -> None:
        """Take both."""
        self._wait_s, self._answers = wait_s, list(answers)
        self.posted: list[tuple[float, list[dict[str, object]], Mapping[str, str]]] = []

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer | NoAnswer:
        """Note the request."""
        number = len(self.posted)
        self.posted.append((time.monotonic(), orjson.loads(body), headers))
        await asyncio.sleep(self._wait_s)
        return self._answers[number % len(self._answers)]


def send(poster: SlowPoster, count: int, rate_per_s: float, end_s: float = 60.0) -> tuple[StepLoad, StepSending]:
    """Send so many messages in batches of ten, until a moment."""
    due_s = np.arange(count) / rate_per_s
    starts, sent_s = group_requests(due_s, 10, 1.0)
    load = StepLoad(100, time.monotonic() + 0.05, 1_700_000_000_000_000, due_s, starts, sent_s)
    entrance = Entrance(poster, RUN, [b'{"a":1}', b'{"a":2}'], {"Authorization": "Bearer x"})
    work = entrance.send_step(load, lambda passed_s: passed_s >= end_s, lambda _: None)
    return load, asyncio.run(work)


def test_a_slow_entrance_holds_up_no_request() -> None:
    """All of 20 requests are out before the first answer; each message has its place and its due time."""
    poster = SlowPoster(2.0, [Answer(201)])
    load, sending = send(poster, 200, 400)
    assert (sending.sent_requests, bool(sending.is_accepted.all()), len(sending.refusals)) == (20, True, 0)
    for (at_s, _, _), due_s in zip(poster.posted, load.sent_s, strict=True):
        assert at_s - load.begun_s >= due_s
    assert poster.posted[-1][0] - poster.posted[0][0] < 2.0
    events = [event for _, body, _ in poster.posted for event in body]
    ids = np.frombuffer(b"".join(UUID(str(event["id"])).bytes for event in events), np.uint8).reshape(-1, 16)
    assert find_places(RUN, ids).tolist() == list(range(100, 300))
    assert [event["time"] for event in events] == [load.begun_us + int(due * 1e6) for due in load.due_s]
    assert [body[0]["data"] for _, body, _ in poster.posted[:3]] == [{"a": 1}, {"a": 2}, {"a": 1}]
    assert poster.posted[0][2]["Authorization"] == "Bearer x"


def test_a_step_ends_before_a_request_that_is_far_off() -> None:
    """The end of a step waits for no request that is due in an hour."""
    poster = SlowPoster(0.0, [Answer(201)])
    begun_s = time.monotonic()
    _, sending = send(poster, 20, 1 / 3_600, end_s=1.2)
    assert time.monotonic() - begun_s < 30
    assert sending.sent_requests <= 1


def test_refusals_are_counted_by_their_reason() -> None:
    """503, 429 and no answer are not acknowledged, and end nothing."""
    timeout = NoAnswer(AttemptResult.TIMEOUT, "no answer within 30 s")
    answers: list[Answer | NoAnswer] = [Answer(201), Answer(503), Answer(429), timeout]
    _, sending = send(SlowPoster(0.0, answers), 40, 4_000)
    assert sending.refusals == {"HTTP 503": 1, "HTTP 429": 1, "no answer within 30 s": 1}
    assert sending.is_accepted.tolist() == [True] * 10 + [False] * 30


def test_events_that_may_never_enter_end_the_run() -> None:
    """The error has the status, and what the entrance said."""
    told = 'the entrance refuses the events with 422: {"errors": "price"}'
    with pytest.raises(EntranceError) as caught:
        send(SlowPoster(0.0, [Answer(422, b'{"errors": "price"}')]), 40, 4_000)
    assert str(caught.value) == told


def test_a_step_can_be_ended_early() -> None:
    """No request is sent behind the end, and those before it are kept."""
    _, sending = send(SlowPoster(0.0, [Answer(201)]), 1_000, 500, end_s=0.4)
    assert 20 <= sending.sent_requests <= 50
    assert sending.is_accepted.sum() == 10 * sending.sent_requests
