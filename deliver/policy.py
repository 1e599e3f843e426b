"""Policy of a delivery: its receiver, batches, parallel requests, retries and circuit breaker, as frozen values.

Order by key: with ``order = KEY`` at most one message of a key is under way, and a message that fails is tried again in
hand, with growing waits, until it is delivered or rejected; it is never deferred, as a later message of its key would
overtake it in a retry topic. The later messages of its key wait behind it, those of other keys go on, until all
messages that may be in hand wait. ``max_age_s`` bounds that wait: a delivery in order wants a short one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

MAX_BATCH_EVENTS: Final = 1_000
"""Maximum number of events in one request, as the gate takes them."""
MAX_TIERS: Final = 8
_DAY_S: Final = 86_400.0
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_HEADER_VALUE: Final = re.compile(r"[ -~]{0,8000}")
_CLIENT_ERRORS: Final = range(400, 500)


def _check_range(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise ValueError(f"{name} is {least:g} to {most:g}, got {value!r}")


class Order(Enum):
    """Order in which messages are delivered."""

    NONE = "none"
    KEY = "key"


class BodyFormat(Enum):
    """Formats of a request's body.

    ``VALUE`` is the value of one message as it is; ``EVENTS`` a JSON list of ``{"id", "time", "data"}``, as the gate
    takes it, whose values have to be JSON.
    """

    VALUE = "value"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Policy of a circuit breaker.

    It opens after ``failures`` failed requests in a row, first for ``open_s``; each failed probe doubles that time,
    up to ``max_open_s``.
    """

    failures: int = 20
    open_s: float = 1.0
    max_open_s: float = 60.0

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check_range("failures", self.failures, 1, 1_000_000)
        _check_range("open_s", self.open_s, 0.001, _DAY_S)
        _check_range("max_open_s", self.max_open_s, self.open_s, _DAY_S)


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Policy of one delivery.

    Raises:
        ValueError: a value is outside its bounds; the text names it, the bounds and the value.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body_format: BodyFormat = BodyFormat.EVENTS
    batch_max_events: int = 100
    batch_max_bytes: int = 1024 * 1024
    linger_s: float = 0.05
    parallel: int = 16
    timeout_s: float = 10.0
    order: Order = Order.NONE
    local_tries: int = 3
    """Requests that carry a message before it is deferred."""
    backoff_base_s: float = 0.1
    backoff_max_s: float = 5.0
    local_time_limit_s: float = 20.0
    """Time in hand after which a message that is not delivered is deferred."""
    tiers_s: tuple[float, ...] = (30.0, 300.0, 3_600.0)
    """Waits of the retry topics."""
    max_age_s: float = _DAY_S
    """Age since its first request after which a message that fails again is rejected."""
    recoverable_statuses: frozenset[int] = frozenset({429})
    """4xx statuses after which a message is sent again, as after every 5xx."""
    retry_after_max_s: float = 300.0
    """Longest wait that a receiver may ask for."""
    signing_secrets: tuple[str, ...] = ()
    """Secrets of Standard Webhooks, ``whsec_…``; a request has a signature of each, so that they can be changed."""
    breaker: BreakerPolicy = BreakerPolicy()
    max_in_hand_events: int = 10_000
    max_in_hand_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        """Check the bounds."""
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"url is http://host… or https://host…, got {self.url[:200]!r}")
        for name, value in self.headers:
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise ValueError(f"a header is a name and one line of visible ASCII, got another one as {name[:80]!r}")
        _check_range("batch_max_events", self.batch_max_events, 1, MAX_BATCH_EVENTS)
        _check_range("batch_max_bytes", self.batch_max_bytes, 1, 1024**3)
        _check_range("linger_s", self.linger_s, 0, 60)
        _check_range("parallel", self.parallel, 1, 1_024)
        _check_range("timeout_s", self.timeout_s, 0.001, 600)
        _check_range("local_tries", self.local_tries, 1, 100)
        _check_range("backoff_base_s", self.backoff_base_s, 0.001, 3_600)
        _check_range("backoff_max_s", self.backoff_max_s, self.backoff_base_s, 3_600)
        _check_range("local_time_limit_s", self.local_time_limit_s, 0, 3_600)
        _check_range("number of tiers_s", len(self.tiers_s), 1, MAX_TIERS)
        for wait_s in self.tiers_s:
            _check_range("each of tiers_s", wait_s, 0.001, 7 * _DAY_S)
        _check_range("max_age_s", self.max_age_s, 0, 365 * _DAY_S)
        _check_range("retry_after_max_s", self.retry_after_max_s, 0, _DAY_S)
        _check_range("max_in_hand_events", self.max_in_hand_events, self.batch_max_events, 1_000_000)
        _check_range("max_in_hand_bytes", self.max_in_hand_bytes, 1, 1024**4)
        if list(self.tiers_s) != sorted(self.tiers_s):
            raise ValueError(f"tiers_s grow from tier to tier, got {', '.join(map(str, self.tiers_s))}")
        odd = sorted(status for status in self.recoverable_statuses if status not in _CLIENT_ERRORS or status == 413)  # noqa: PLR2004
        if odd:
            told = "recoverable_statuses are 4xx but 413, after which a batch is split (5xx are recoverable anyway)"
            raise ValueError(f"{told}, got {', '.join(map(str, odd))}")
        if self.body_format is BodyFormat.VALUE and self.batch_max_events != 1:
            raise ValueError(f'body_format "value" sends one event: batch_max_events is 1, got {self.batch_max_events}')

    def describe(self) -> str:
        """Return the policy as one line without secrets: neither headers nor signing secrets nor the URL's path."""
        hidden = {"url", "headers", "signing_secrets"}
        parts = urlsplit(self.url)
        shown = [f"{one.name}={getattr(self, one.name)}" for one in fields(self) if one.name not in hidden]
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}: {', '.join(shown)}"
