"""Ids of a rating's messages, and bodies of requests, as arrays. Pure.

An id is a UUID of version 7 (RFC 9562) whose random bits hold the run (42 bits) and the place of the message in it (32
bits), so that what arrives is found by arithmetic, without a table of ids.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

RUN_BITS: Final = 42
MAX_MESSAGES: Final = 1 << 32
"""Messages of a run."""
ID_BYTES: Final = 16
TEXT_CHARS: Final = 36
_LOW_RUN_BITS: Final = 30
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGITS: Final = np.array([place for place in range(TEXT_CHARS) if place not in {8, 13, 18, 23}])
_TIME_DIGITS: Final = 16
"""Digits of µs since 1970, until the year 2286."""
_HEX_VALUES: Final = np.full(256, 255, np.uint8)
_HEX_VALUES[_HEX] = np.arange(16)
_HEX_VALUES[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


def build_ids(run: int, first: int, due_us: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Build the ids of messages from place ``first`` on, by their event times in µs since 1970; shape (n, 16)."""
    high = ((due_us // 1_000) << 16).astype(np.uint64) | np.uint64(0x7000 | run >> _LOW_RUN_BITS)
    places = np.arange(first, first + due_us.size, dtype=np.uint64)
    low = np.uint64(1 << 63 | (run & (1 << _LOW_RUN_BITS) - 1) << 32) | places
    return np.stack([high, low], axis=1).astype(">u8").view(np.uint8).reshape(-1, ID_BYTES)


def find_places(run: int, ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the places of the messages of a run among ids of shape (n, 16); other ids are left out."""
    places = match_places(run, ids)
    return places[places >= 0]


def match_places(run: int, ids: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the place of each message, -1 where an id of shape (n, 16) is not of the run."""
    words = np.ascontiguousarray(ids).reshape(-1, ID_BYTES).view(">u8").astype(np.uint64)
    is_own = (words[:, 0] & np.uint64(0xFFFF)) == np.uint64(0x7000 | run >> _LOW_RUN_BITS)
    is_own &= (words[:, 1] >> np.uint64(32)) == np.uint64(1 << 31 | run & (1 << _LOW_RUN_BITS) - 1)
    return np.where(is_own, (words[:, 1] & np.uint64(0xFFFF_FFFF)).astype(np.int64), -1)


def format_ids(ids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Format ids of shape (n, 16) as UUIDs with hyphens; shape (n, 36), ASCII."""
    texts = np.full((len(ids), TEXT_CHARS), ord("-"), np.uint8)
    texts[:, _DIGITS[0::2]] = _HEX[ids >> 4]
    texts[:, _DIGITS[1::2]] = _HEX[ids & 15]
    return texts


def parse_ids(texts: bytes) -> NDArray[np.uint8]:
    """Parse UUIDs of 36 characters each, end to end, to shape (n, 16); what is no UUID becomes an id of zeros."""
    digits = _HEX_VALUES[np.frombuffer(texts, np.uint8).reshape(-1, TEXT_CHARS)[:, _DIGITS]]
    ids: NDArray[np.uint8] = np.asarray(digits[:, 0::2] << 4 | digits[:, 1::2] & 15, np.uint8)
    ids[(digits == 255).any(axis=1)] = 0  # noqa: PLR2004 - of no digit
    return ids


def build_body(ids: NDArray[np.uint8], due_us: NDArray[np.int64], data: bytes) -> bytes:
    """Build the JSON list of events as the gate takes it; all of them carry the same data, itself JSON."""
    parts = (b'{"id":"', b"", b'","time":', b"", b',"data":' + data + b"},")
    sizes = (len(parts[0]), TEXT_CHARS, len(parts[2]), _TIME_DIGITS, len(parts[4]))
    ends = np.cumsum(sizes)
    rows = np.empty((len(ids), int(ends[-1])), np.uint8)
    for part, end in zip(parts, ends, strict=True):
        if part:
            rows[:, end - len(part) : end] = np.frombuffer(part, np.uint8)
    rows[:, ends[0] : ends[1]] = format_ids(ids)
    powers = 10 ** np.arange(_TIME_DIGITS - 1, -1, -1, dtype=np.int64)
    rows[:, ends[2] : ends[3]] = due_us[:, None] // powers % 10 + ord("0")
    return b"[" + rows.tobytes()[:-1] + b"]"
