"""Hash chain over the lines of an evidence file, by SHA-256.

A line is a hash in hexadecimal, a space, and the JSON that it is of. A hash is that of the hash before, as 32 bytes,
and the JSON, as the bytes that stand in the file: whoever checks a line needs to know nothing of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

FORMAT: Final = "hopwatch-evidence-1"
HASH_HEX: Final = 64
"""Length of a hash in hexadecimal."""


class ChainLine(NamedTuple):
    """Line of a file: the hash that it says, and its JSON."""

    said: str
    body: bytes


class HashChain:
    """Chain that lines are added to; it begins with the hash of the name of the format."""

    def __init__(self) -> None:
        """Begin without lines."""
        self.head: str = sha256(FORMAT.encode()).hexdigest()
        """Hash of the last line."""

    def add_body(self, body: bytes) -> str:
        """Add the JSON of the next line, and return its hash."""
        self.head = sha256(bytes.fromhex(self.head) + body).hexdigest()
        return self.head

    def build_line(self, value: Mapping[str, Any]) -> bytes:
        """Add a value as the next line, and return the line."""
        body = encode_canonical(value)
        return f"{self.add_body(body)} ".encode() + body + b"\n"


def encode_canonical(value: Mapping[str, Any]) -> bytes:
    """Encode a value as JSON in one way, so that equal windows are equal bytes: names in order, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # A text of a stranger may hold half of a pair of surrogates, which UTF-8 does not know.
    return text.encode("utf-8", "backslashreplace")


def split_line(line: bytes) -> ChainLine | None:
    """Split a line of a file; None if it is none of a chain."""
    said, space, body = line.rstrip(b"\n").partition(b" ")
    if not space or len(said) != HASH_HEX or said.strip(b"0123456789abcdef"):
        return None
    return ChainLine(said.decode(), body)
