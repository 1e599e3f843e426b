"""Producers of events: authentication by token, stored only as hashes, and quotas."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.http.tokens import find_holder

QUOTA_PERIOD_S: Final = 10
"""Window over which quotas are averaged, in s."""
SCOPE_KEY: Final = "hopwatch.producer"
"""Key of the request's producer in the ASGI scope."""


@dataclass(frozen=True, slots=True)
class Producer:
    """Producer of events: the SHA-256 of each of its tokens, its streams (all, if none is named), and its quotas.

    ``subjects`` are those whose schemas and levels it may change; a producer without named streams may change all.
    """

    name: str
    token_hashes: tuple[bytes, ...]
    streams: frozenset[str] = frozenset()
    events_per_second: int | None = None
    bytes_per_second: int | None = None
    subjects: frozenset[str] = frozenset()


ANONYMOUS: Final = Producer("", ())
"""Producer of all requests when no producers are configured."""


class Producers:
    """Authenticate producers and enforce their quotas; without any producer, every request is accepted."""

    def __init__(self, producers: Sequence[Producer] = ()) -> None:
        """Take the producers, with empty quota windows."""
        self._producers = tuple(producers)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    @property
    def is_token_required(self) -> bool:
        """Requests must carry a token, as producers are configured."""
        return bool(self._producers)

    def authenticate(self, headers: Iterable[tuple[bytes, bytes]]) -> Producer:
        """Return the producer of a request, by its token.

        Raises:
            HttpProblem: the token is missing or unknown.
        """
        if not self.is_token_required:
            return ANONYMOUS
        return find_holder(headers, self._producers, "unknown-producer")

    def check_subject(self, producer: Producer, subject: str) -> None:
        """Check that a producer may change the schemas and the level of a subject; the empty name means all subjects.

        Raises:
            HttpProblem: it may not.
        """
        if producer.streams and subject not in producer.subjects:
            asked = f"those of {subject!r:.80}" if subject else "the level of all subjects"
            told = f"{producer.name} may change the schemas of {', '.join(sorted(producer.subjects))}, not {asked}"
            raise HttpProblem(HTTPStatus.FORBIDDEN, "other-subject", told[:400])

    def charge_stream(self, producer: Producer, stream: str, events: int, size: int) -> None:
        """Check that a producer may send to a stream, and charge its events and bytes to the quotas.

        Raises:
            HttpProblem: it may not send to this stream, or has exceeded a quota.
        """
        if producer.streams and stream not in producer.streams:
            told = f"{producer.name} may send to {', '.join(sorted(producer.streams))}, not to {stream!r}"
            raise HttpProblem(HTTPStatus.FORBIDDEN, "other-stream", told)
        self.charge(producer, events, size)

    def charge(self, producer: Producer, events: int, size: int) -> None:
        """Charge events and bytes to a producer's quotas; a request to the registry counts as one event.

        Raises:
            HttpProblem: it has exceeded a quota.
        """
        costs = [
            (what, RateLimitItemPerSecond(quota * QUOTA_PERIOD_S, QUOTA_PERIOD_S), cost)
            for what, quota, cost in (
                ("events", producer.events_per_second, events),
                ("bytes", producer.bytes_per_second, size),
            )
            if quota is not None
        ]
        for what, item, cost in costs:
            self._check_quota(producer, what, item, cost)
        for what, item, cost in costs:
            self._limiter.hit(item, producer.name, what, cost=cost)

    def _check_quota(self, producer: Producer, what: str, item: RateLimitItemPerSecond, cost: int) -> None:
        told = f"{producer.name} may send {item.amount // QUOTA_PERIOD_S:,} {what} a second"
        if cost > item.amount:
            told = f"{told}, and these {cost:,} are more than {QUOTA_PERIOD_S} s of that: send them in parts"
            raise HttpProblem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "over-quota", told)
        if not self._limiter.test(item, producer.name, what, cost=cost):
            again_s = max(
                1, math.ceil(self._limiter.get_window_stats(item, producer.name, what).reset_time - time.time())
            )
            more = {"retry-after": str(min(again_s, QUOTA_PERIOD_S))}
            raise HttpProblem(HTTPStatus.TOO_MANY_REQUESTS, "over-quota", f"{told}: retry later", extra_headers=more)
