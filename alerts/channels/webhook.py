"""A receiver of one's own: the notification as JSON, signed, so that it knows who sent it and that it is fresh.

The body is that of :func:`alerts.events.to_json`. ``Hopwatch-Signature: t=<seconds>,v1=<hex>`` holds the HMAC-SHA256,
by the channel's ``secret``, of ``<seconds>.<body>``; docs/ALERTS.md shows how to check it. ``Idempotency-Key`` is the
same at each try of one notification and another for every other one. Any 2xx takes it. A heartbeat is sent
again each minute: whoever listens calls somebody when it is missing.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import quote

from hopwatch.alerts.channels.channel import Outcome, Taken
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.events import Event, Kind, to_json
from hopwatch.alerts.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.settings.channels import WebhookChannel

BEAT_S: Final = 60.0
"""After how long a heartbeat is sent again."""


class Webhook:
    """A channel to one URL."""

    def __init__(self, settings: WebhookChannel, clock: Clock | None = None) -> None:
        """Take its settings; nothing is asked yet."""
        self._url, self._secret = settings.read_secret("url"), settings.read_secret("secret")
        self._headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        secrets = [self._url, self._secret, *self._headers.values()]
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, secrets, clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it."""
        body = to_json(delivery.notification).encode("utf-8", "replace")
        signed = {"Hopwatch-Signature": signature(self._secret, body, now_us // 1_000_000)} if self._secret else {}
        own = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key(delivery)}
        outcome = self._poster.post(self._url, body, {**self._headers, **own, **signed}, now_us)
        return Taken(BEAT_S) if isinstance(outcome, Taken) and _is_beat(delivery) else outcome

    def close(self) -> None:
        """Nothing is kept open."""


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the header that proves who sent a body, and when."""
    signed = hmac.digest(secret.encode(), f"{at_s}.".encode() + body, "sha256")
    return f"t={at_s},v1={signed.hex()}"


def idempotency_key(delivery: Delivery) -> str:
    """Return what is the same at each try of one notification; the key of its incident stands before the ``#``.

    A store that begins anew counts from one again, at another time. Each heartbeat is one of its own.
    """
    key = quote(delivery.notification.key, safe="/*", errors="replace")[:400]
    at_us = delivery.notification.at_us if _is_beat(delivery) else delivery.created_us
    return f"{key}#{delivery.number}-{at_us}"


def _is_beat(delivery: Delivery) -> bool:
    return delivery.notification.kind is Kind.HEARTBEAT and delivery.notification.event is Event.FIRING
