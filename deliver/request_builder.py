"""Requests of a delivery: body, ids and signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.policy import BodyFormat, DeliveryPolicy
from hopwatch.deliver.request_body import build_body
from hopwatch.deliver.signature import build_request_id, parse_secret, sign_request
from hopwatch.probes.message_headers import TIME_HEADER


class DeliveryRequest(NamedTuple):
    """Request that carries messages."""

    body: bytes
    headers: Mapping[str, str]


class RequestBuilder:
    """Builder of the requests of one delivery."""

    def __init__(self, policy: DeliveryPolicy) -> None:
        """Take the policy.

        Raises:
            ValueError: a signing secret is none.
        """
        self._body_format = policy.body_format
        self._headers = dict(policy.headers)
        self._keys = [parse_secret(secret) for secret in policy.signing_secrets]

    def build_request(self, messages: Sequence[DeliveryMessage], now_us: int) -> DeliveryRequest:
        """Build the request that carries the messages; it is signed anew for each try, as its signature has a time."""
        body = build_body(messages, self._body_format)
        request_id = build_request_id(message.message_id for message in messages)
        headers = self._headers | {
            "Content-Type": body.content_type,
            "Idempotency-Key": request_id,
            "webhook-id": request_id,
        }
        if self._body_format is BodyFormat.VALUE:
            headers[TIME_HEADER] = str(messages[0].event_us)
        if self._keys:
            headers |= sign_request(self._keys, request_id, now_us // 1_000_000, body.content)
        return DeliveryRequest(body.content, headers)
