"""Signatures of requests by the scheme of Standard Webhooks, version 1 (https://www.standardwebhooks.com).

``webhook-signature`` holds, for each secret, ``v1,`` and the base64 of HMAC-SHA256 of ``id.timestamp.body``, where
``timestamp`` are the seconds of ``webhook-timestamp``. A secret is ``whsec_`` and the base64 of 24 to 64 bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of all secrets
MIN_SECRET_BYTES: Final = 24
MAX_SECRET_BYTES: Final = 64
MAX_ID_CHARS: Final = 255
"""Maximum length of an id in a header."""


def parse_secret(secret: str) -> bytes:
    """Parse a secret into the key of its HMAC.

    Raises:
        ValueError: it is none; the text does not repeat it.
    """
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError(f"a signing secret begins with {SECRET_PREFIX!r} and goes on in base64, got another beginning")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        told = f"a signing secret is {SECRET_PREFIX!r} and base64, got something after it that is no base64"
        raise ValueError(told) from None
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        bounds = f"{MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes"
        raise ValueError(f"a signing secret has {bounds} in base64 after {SECRET_PREFIX!r}, got {len(key)}")
    return key


def sign_request(keys: Iterable[bytes], request_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Return the three headers of a signed request."""
    signed = f"{request_id}.{timestamp_s}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys)
    return {
        "webhook-id": request_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": " ".join(f"v1,{one}" for one in signatures),
    }


def build_request_id(message_ids: Iterable[str]) -> str:
    """Build the id of a request, which is the same whenever the same messages are sent together.

    That of one message is the message's own, with all but letters, digits, ``-``, ``_`` and ``~`` percent-encoded: a
    header holds no line breaks, and the signed text no other full stops. Several have a hash of theirs.
    """
    ids = list(message_ids)
    if len(ids) == 1:
        encoded = quote(ids[0], safe="", errors="replace").replace(".", "%2E")
        if 0 < len(encoded) <= MAX_ID_CHARS:
            return encoded
    # Each id begins with its length: other ids never make the same text.
    joined = "".join(f"{len(one)}:{one}" for one in ids).encode("utf-8", "replace")
    return f"batch_{hashlib.blake2b(joined, digest_size=20).hexdigest()}"
