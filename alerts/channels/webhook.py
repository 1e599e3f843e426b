"""Webhook channel: posts the notification as JSON, signed, so that the receiver can check its sender and its age.

The body is that of :func:`alerts.events.to_json`. ``Hopwatch-Signature: t=<seconds>,v1=<hex>`` holds the HMAC-SHA256,
by the channel's ``secret``, of ``<seconds>.<body>``; docs/ALERTS.md shows how to check it. ``Idempotency-Key`` is the
same at each try of one notification and another for every other one. Any 2xx means that it was accepted. A heartbeat is
sent again each minute: the receiver calls a person when it is missing.
"""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import quote

from hopwatch.alerts.channels.channel import Accepted, Outcome
from hopwatch.alerts.channels.http import Poster
from hopwatch.alerts.events import AlertKind, Event, to_json
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.settings.channels import WebhookChannel

HEARTBEAT_S: Final = 60.0
"""Interval at which a heartbeat is sent again."""


class Webhook:
    """A channel to one URL."""

    def __init__(self, settings: WebhookChannel, clock: Clock | None = None) -> None:
        """Take the settings; nothing is sent yet."""
        self._url, self._secret = settings.read_secret("url"), settings.read_secret("secret")
        self._headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        secrets = [self._url, self._secret, *self._headers.values()]
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, secrets, clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it."""
        body = to_json(delivery.notification).encode("utf-8", "replace")
        outcome = self.post(body, build_idempotency_key(delivery), now_us)
        return Accepted(HEARTBEAT_S) if isinstance(outcome, Accepted) and _is_heartbeat(delivery) else outcome

    def post(self, body: bytes, idempotency_key: str, now_us: int) -> Outcome:
        """Post a JSON body with its key and signature; ``now_us`` is the wall clock."""
        signed = {"Hopwatch-Signature": sign_body(self._secret, body, now_us // 1_000_000)} if self._secret else {}
        own = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
        return self._poster.post(self._url, body, {**self._headers, **own, **signed}, now_us)

    def close(self) -> None:
        """Nothing is kept open."""


def sign_body(secret: str, body: bytes, at_s: int) -> str:
    """Sign a body; return the value of the header that proves its sender and its time."""
    signed = hmac.digest(secret.encode(), f"{at_s}.".encode() + body, "sha256")
    return f"t={at_s},v1={signed.hex()}"


def build_idempotency_key(delivery: Delivery) -> str:
    """Build the key that is the same at each try of one notification; the part before ``#`` is its incident's key.

    It holds the time too, as a new store counts from one again. Each heartbeat has a key of its own.
    """
    key = quote(delivery.notification.key, safe="/*", errors="replace")[:400]
    at_us = delivery.notification.at_us if _is_heartbeat(delivery) else delivery.created_us
    return f"{key}#{delivery.number}-{at_us}"


def _is_heartbeat(delivery: Delivery) -> bool:
    return delivery.notification.kind is AlertKind.HEARTBEAT and delivery.notification.event is Event.FIRING
