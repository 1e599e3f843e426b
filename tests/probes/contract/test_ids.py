"""Tests of message ids: sixteen bytes for whatever a team calls a message."""

from __future__ import annotations

import uuid
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest

from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import IdError, IntId, TextId, UuidId, encode_id, id_bytes

SOME_UUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")

FORMS = {
    "a UUID": (SOME_UUID, "00112233445566778899aabbccddeeff"),
    "16 bytes": (bytes(range(16)), "000102030405060708090a0b0c0d0e0f"),
    "zero": (0, "00" * 16),
    "a small integer, its low byte last": (258, "00" * 14 + "0102"),
    "the largest integer": (2**128 - 1, "ff" * 16),
    "a text, hashed": ("order-17", blake2b(b"order-17", digest_size=16).hexdigest()),
    "an empty text": ("", "cae66941d9efbd404e4d88758ea67670"),
    "a text beyond ASCII, as UTF-8": ("größe", blake2b(b"gr\xc3\xb6\xc3\x9fe", digest_size=16).hexdigest()),
    "a UUID as text is a text": (str(SOME_UUID), blake2b(str(SOME_UUID).encode(), digest_size=16).hexdigest()),
    "half a character": ("\ud800", blake2b(b"\xed\xa0\x80", digest_size=16).hexdigest()),
}


@pytest.mark.parametrize(("message_id", "wire"), FORMS.values(), ids=FORMS)
def test_every_kind_of_id_has_sixteen_bytes(message_id: uuid.UUID | bytes | int | str, wire: str) -> None:
    """WIRE.md says which."""
    assert id_bytes(message_id).hex() == wire


@pytest.mark.parametrize(
    ("message_id", "found"),
    [
        (SOME_UUID, (WireIdKind.UUID, None)),
        (SOME_UUID.bytes, (WireIdKind.BYTES, None)),
        (UuidId(SOME_UUID.bytes), (WireIdKind.UUID, None)),
        (IntId(SOME_UUID.bytes), (WireIdKind.INT, None)),
        (7, (WireIdKind.INT, None)),
        (np.int64(7), (WireIdKind.INT, None)),
        ("größe", (WireIdKind.TEXT, "größe".encode())),
        (TextId.from_text("größe"), (WireIdKind.TEXT, "größe".encode())),
        (np.str_("größe"), (WireIdKind.TEXT, "größe".encode())),
    ],
    ids=repr,
)
def test_an_id_knows_what_it_was(message_id: Any, found: tuple[WireIdKind, bytes | None]) -> None:  # noqa: ANN401 - of a host
    """Of which kind, and the text of a text; sixteen bytes that know it keep it."""
    assert encode_id(message_id)[1:] == found


REFUSED: dict[str, tuple[Any, str]] = {
    "15 bytes": (bytes(15), "a message id in bytes has 16 of them, got 15: pass a str to have it hashed"),
    "no bytes": (b"", "a message id in bytes has 16 of them, got 0: pass a str to have it hashed"),
    "a negative integer": (-1, "an integer message id lies in 0 … 2^128 - 1, got -1"),
    "2^128": (2**128, f"an integer message id lies in 0 … 2^128 - 1, got {2**128}"),
    "more digits than Python prints": (10**5_000, "lies in 0 … 2^128 - 1, got one of 16610 bits"),
    "nothing": (None, "a message id is a UUID, 16 bytes, an int or a str, got NoneType"),
    "a truth value": (True, "a message id is a UUID, 16 bytes, an int or a str, got bool"),
    "a float": (1.0, "a message id is a UUID, 16 bytes, an int or a str, got float"),
    "an array": (np.arange(3), "a message id is a UUID, 16 bytes, an int or a str, got ndarray"),
    "a float of numpy": (np.float64(1), "a message id is a UUID, 16 bytes, an int or a str, got float64"),
    "a bytearray": (bytearray(16), "a message id is a UUID, 16 bytes, an int or a str, got bytearray"),
}


@pytest.mark.parametrize(("message_id", "told"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_id_is_refused(message_id: Any, told: str) -> None:  # noqa: ANN401 - anything may come from a host
    """The error says what was got and what can be done."""
    with pytest.raises(IdError) as caught:
        id_bytes(message_id)
    assert told in str(caught.value)
