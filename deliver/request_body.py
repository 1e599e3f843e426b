"""Bodies of requests: one message's value, or a list of events as the gate takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from hopwatch.deliver.message import DeliveryMessage
from hopwatch.deliver.policy import BodyFormat

EVENT_OVERHEAD_BYTES: Final = 64
"""Bytes of an event in a list beside its id and its value."""
_CONTENT_TYPE: Final = "content-type"
_DEFAULT_TYPE: Final = "application/octet-stream"
_JSON: Final = "application/json"


class RequestBody:
    """Body of a request that carries messages, and the type of its content."""

    __slots__ = ("content", "content_type")

    def __init__(self, content: bytes, content_type: str) -> None:
        """Take both."""
        self.content, self.content_type = content, content_type


def build_body(messages: Sequence[DeliveryMessage], body_format: BodyFormat) -> RequestBody:
    """Build the body that carries the messages, each of which :func:`find_fault` found to be without fault.

    Of ``VALUE`` the type is that of the message's header ``content-type``.
    """
    if body_format is BodyFormat.VALUE:
        (message,) = messages
        return RequestBody(message.value, _find_content_type(message))
    return RequestBody(b"[" + b",".join(map(_build_event, messages)) + b"]", _JSON)


def find_fault(message: DeliveryMessage, body_format: BodyFormat) -> str:
    """Return the reason for which a message cannot be carried; empty if it can."""
    if body_format is BodyFormat.VALUE:
        return ""
    try:
        orjson.loads(message.value)
        orjson.dumps(message.message_id)
    except orjson.JSONDecodeError as error:
        return f"the value is no JSON, which a list of events needs: {error!s:.80}"
    except orjson.JSONEncodeError:
        return "the id is no text that JSON can hold"
    return ""


def estimate_bytes(message: DeliveryMessage) -> int:
    """Return about how many bytes a message takes in a body."""
    return len(message.value) + len(message.message_id) + EVENT_OVERHEAD_BYTES


def _build_event(message: DeliveryMessage) -> bytes:
    return b'{"id":%b,"time":%d,"data":%b}' % (orjson.dumps(message.message_id), message.event_us, message.value)


def _find_content_type(message: DeliveryMessage) -> str:
    for name, value in message.headers:
        if name.lower() == _CONTENT_TYPE:
            said = value.decode("latin-1").strip()
            return said if said.isprintable() and said.isascii() and said else _DEFAULT_TYPE
    return _DEFAULT_TYPE
