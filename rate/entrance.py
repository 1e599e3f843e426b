"""Entrance of a stream: requests of a step are posted at their moments, whether earlier ones are answered or not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hopwatch.deliver.answers import Answer, NoAnswer
from hopwatch.rate.message_ids import build_body, build_ids

MAX_CONNECTIONS: Final = 256
"""Requests under way at once, as many as the gate takes of one stream; further ones wait, and their time counts."""
TIMEOUT_S: Final = 30.0
TRANSIENT_STATUSES: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses below 500 by which an entrance that is loaded refuses a request."""
CHECK_S: Final = 0.5
"""Time between two looks at what has arrived."""
_MAX_TOLD_CHARS: Final = 300


class EntranceError(Exception):
    """The entrance refuses the events, whatever the load."""


class EventPoster(Protocol):
    """Receiver of requests at a URL."""

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer | NoAnswer:
        """Post once."""


@dataclass(frozen=True, slots=True)
class StepLoad:
    """Load of a step: when each message is due, in s after the start, and in which request it goes.

    It starts at ``begun_s`` of the monotonic clock, which is ``begun_us`` since 1970.
    """

    first: int
    begun_s: float
    begun_us: int
    due_s: NDArray[np.float64]
    starts: NDArray[np.int64]
    sent_s: NDArray[np.float64]


@dataclass(slots=True)
class StepSending:
    """Record of how a step was sent; arrays by message or by request."""

    is_accepted: NDArray[np.bool_]
    lateness_s: NDArray[np.float64]
    round_trip_s: NDArray[np.float64]
    sent_requests: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    """Requests by why they were not acknowledged."""
    fatal: str = ""


class Entrance:
    """Entrance of one stream for the messages of one run."""

    def __init__(self, poster: EventPoster, run: int, events: Sequence[bytes], headers: Mapping[str, str]) -> None:
        """Take the data of events, each as JSON: the messages of one request carry the same, requests take turns."""
        self._poster, self._run, self._events = poster, run, list(events)
        self._headers = {"Content-Type": "application/json", **headers}

    async def send_step(
        self, load: StepLoad, is_over: Callable[[float], bool], note_progress: Callable[[float], object]
    ) -> StepSending:
        """Send a step, and return when all requests have been answered.

        ``is_over`` is asked with the seconds since the start, and ends the step early.

        Raises:
            EntranceError: an event was refused for good.
        """
        requests = len(load.sent_s)
        sending = StepSending(np.zeros(load.due_s.size, bool), np.zeros(requests), np.full(requests, np.inf))
        under_way: set[asyncio.Task[None]] = set()
        check_s = 0.0

        def is_ended(passed_s: float) -> bool:
            note_progress(passed_s)
            return bool(sending.fatal) or is_over(passed_s)

        for number in range(requests):
            start, end = int(load.starts[number]), int(load.starts[number + 1])
            due_us = load.begun_us + (load.due_s[start:end] * 1e6).astype(np.int64)
            ids = build_ids(self._run, load.first + start, due_us)
            body = build_body(ids, due_us, self._events[number % len(self._events)])
            at_s = load.begun_s + float(load.sent_s[number])
            if await _wait_for_moment(at_s, load.begun_s, is_ended):
                break
            passed_s = time.monotonic() - load.begun_s
            if passed_s >= check_s:
                check_s = passed_s + CHECK_S
                if is_ended(passed_s):
                    break
            sending.lateness_s[number] = passed_s - float(load.sent_s[number])
            sending.sent_requests = number + 1
            task = asyncio.create_task(self._send_request(body, number, slice(start, end), sending))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way)
        if sending.fatal:
            raise EntranceError(sending.fatal)
        return sending

    async def _send_request(self, body: bytes, number: int, own: slice, sending: StepSending) -> None:
        sent_s = time.monotonic()
        answer = await self._poster.post(body, self._headers)
        sending.round_trip_s[number] = time.monotonic() - sent_s
        if isinstance(answer, NoAnswer):
            why = answer.reason
        elif HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            sending.is_accepted[own] = True
            return
        else:
            why = f"HTTP {answer.status}"
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.status not in TRANSIENT_STATUSES:
                said = answer.body.decode("utf-8", "replace")[:_MAX_TOLD_CHARS]
                sending.fatal = f"the entrance refuses the events with {answer.status}: {said}"
        sending.refusals[why] = sending.refusals.get(why, 0) + 1


async def _wait_for_moment(at_s: float, begun_s: float, is_ended: Callable[[float], bool]) -> bool:
    """Wait for the moment of a request, however far off; return whether the step has ended meanwhile."""
    while (left_s := at_s - time.monotonic()) > CHECK_S:
        await asyncio.sleep(CHECK_S)
        if is_ended(time.monotonic() - begun_s):
            return True
    # A sender that is late lets answers in all the same.
    await asyncio.sleep(max(0.0, left_s))
    return False
