"""A receiver of one's own: the notification as JSON, signed, so that it knows who sent it and that it is fresh.

The body is that of :func:`alerts.events.to_json`. ``Hopwatch-Signature: t=<seconds>,v1=<hex>`` holds the HMAC-SHA256,
by the channel's ``secret``, of ``<seconds>.<body>``; docs/ALERTS.md shows how to check it. ``Idempotency-Key`` is the
same at each try of one notification and another for every other one. Any 2xx takes it.
"""

from __future__ import annotations

import hmac
from urllib.parse import quote

from alerts.channels.channel import Outcome
from alerts.channels.http import Poster
from alerts.events import to_json
from alerts.outbox import Delivery
from monitor.clock import Clock
from monitor.settings.channels import WebhookChannel


class Webhook:
    """A channel to one URL."""

    def __init__(self, settings: WebhookChannel, clock: Clock | None = None) -> None:
        """Take its settings; nothing is asked yet."""
        self._url, self._secret = settings.said("url"), settings.said("secret")
        self._headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        secrets = [self._url, self._secret, *self._headers.values()]
        self._poster = Poster(settings.timeout_us / 1e6, settings.ca_file, secrets, clock)

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Post it."""
        body = to_json(delivery.notification).encode("utf-8", "replace")
        signed = {"Hopwatch-Signature": signature(self._secret, body, now_us // 1_000_000)} if self._secret else {}
        own = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key(delivery)}
        return self._poster.post(self._url, body, {**self._headers, **own, **signed}, now_us)

    def close(self) -> None:
        """Nothing is kept open."""


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the header that proves who sent a body, and when."""
    signed = hmac.digest(secret.encode(), f"{at_s}.".encode() + body, "sha256")
    return f"t={at_s},v1={signed.hex()}"


def idempotency_key(delivery: Delivery) -> str:
    """Return what is the same at each try of one notification; the key of its incident stands before the ``#``.

    A store that begins anew counts from one again, at another time.
    """
    key = quote(delivery.notification.key, safe="/*", errors="replace")[:400]
    return f"{key}#{delivery.number}-{delivery.created_us}"
