"""Event ids: UUIDs, and the timestamp that versions 1, 6 and 7 contain (RFC 9562)."""

from __future__ import annotations

import re
from typing import Final

from hopwatch.probes.contract.ids import UuidId

UUID_PATTERN: Final = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
"""Text form of a UUID; use it with ``fullmatch``."""
_GREGORIAN_100_NS: Final = 0x01B2_1DD2_1381_4000
"""Time from 15 October 1582, the epoch of versions 1 and 6, to 1970, in units of 100 ns."""
_VARIANT: Final = 0b10


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of a UUID.

    Raises:
        ValueError: it is not in the form of RFC 9562.
    """
    if not UUID_PATTERN.fullmatch(text):
        raise ValueError(describe_bad_uuid(text))
    return UuidId(bytes.fromhex(text.replace("-", "")))


def describe_bad_uuid(text: str) -> str:
    """Return the error text for a text that is not a UUID."""
    return f"an id is a UUID such as 0192d5a0-0000-7000-8000-000000000001, got {text!r:.80}"


def format_uuid(event_id: bytes) -> str:
    """Return the text form of a UUID."""
    digits = event_id.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid_version(event_id: bytes) -> int:
    """Return the version of a UUID; 0 for one of another variant."""
    return event_id[6] >> 4 if event_id[8] >> 6 == _VARIANT else 0


def uuid_time_us(event_id: bytes) -> int | None:
    """Return the timestamp in a UUID, µs since 1970; None for a version without one.

    Version 7 has a precision of 1 ms, versions 1 and 6 of 100 ns.
    """
    match uuid_version(event_id):
        case 7:
            return int.from_bytes(event_id[:6]) * 1_000
        case 1:
            count = int.from_bytes(event_id[6:8] + event_id[4:6] + event_id[:4]) & (1 << 60) - 1
        case 6:
            count = int.from_bytes(event_id[:6]) << 12 | int.from_bytes(event_id[6:8]) & 0xFFF
        case _:
            return None
    return (count - _GREGORIAN_100_NS) // 10
