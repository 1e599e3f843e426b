"""Message ids as texts, and the sixteen bytes that represent them on the wire."""

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

from tests.model.random_choices import Dice, Fault

NAMED = ("id_kind", "id_texts", "id_text_ends", "until_us", "sequence", "metrics")
"""The fields that version 2 has behind those of version 1."""


class Given(bytes):
    """The sixteen bytes of a message's id, of which kind it is, and its text if it is one."""

    kind: str
    text: bytes

    @classmethod
    def of(cls, message_id: bytes, kind: str, text: bytes = b"") -> "Given":
        """Give the id with what it was called."""
        given = cls(message_id)
        given.kind, given.text = kind, text
        return given


def as_text(dice: Dice, number: int) -> Given:
    """Give an id that is a text: plain, empty, long or odd, and no UTF-8 now and then."""
    text = f"order-{number}-{dice.rng.getrandbits(40):x}".encode()
    if Fault.AWKWARD in dice.dials.faults:
        text = dice.one((text, text, b"", text * 30, "\u2603 [b]'\"<i>\n".encode() + text, b"\xed\xa0\x80" + text))
    return Given.of(hashlib.blake2b(text, digest_size=16).digest(), "TEXT", text)


class Naming:
    """Naming of ids by one probe instance: in which version, UUIDs as bytes or not, texts or their hashes."""

    def __init__(self, dice: Dice, *, has_ids: bool = True) -> None:
        """Choose; version 1 knows ids alone."""
        self.version = dice.one((1, 2, 2)) if has_ids else 2
        if {Fault.DEFERRED, Fault.RETYPED} <= dice.dials.faults:
            # Version 1 cannot say that it keeps a message, which another instance then handles by another name.
            self.version = 2
        self.takes_uuids_as_bytes = dice.one((True, False, False))
        self.leaves_out_texts = dice.one((True, False, False))
        self._numbers = dice.one((True, False))

    def kind(self, message_id: bytes) -> str:
        """Give of which kind this probe takes an id to be."""
        kind = message_id.kind if isinstance(message_id, Given) else "BYTES"
        return "BYTES" if kind == "UUID" and self.takes_uuids_as_bytes else kind

    def fields(self, message_ids: Sequence[bytes]) -> dict[str, Any]:
        """Give what version 2 says of the ids of a batch, all of one kind; of version 1 nothing."""
        if self.version == 1:
            return {}
        kind = self.kind(message_ids[0]) if message_ids else "BYTES"
        none: dict[str, Any] = dict.fromkeys(NAMED[1:-1], b"")
        told = none | {"id_kind": kind, "metrics": []}
        if self._numbers:
            told["sequence"] = struct.pack(f"<{len(message_ids)}q", *range(len(message_ids)))
        if kind == "TEXT" and not self.leaves_out_texts:
            texts = [one.text if isinstance(one, Given) else b"" for one in message_ids]
            ends = [sum(map(len, texts[: at + 1])) for at in range(len(texts))]
            told |= {"id_texts": b"".join(texts), "id_text_ends": struct.pack(f"<{len(ends)}I", *ends)}
        return told
