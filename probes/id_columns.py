"""Message ids as columns in wire format: bytes, kinds and texts."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import repeat
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import IntId, TextId, UuidId, encode_id, hash_text
from hopwatch.probes.contract.limits import ID_BYTES

NO_TEXT: Final = -1
"""Index of an absent text."""
_UUID_BYTES: Final = attrgetter("bytes")
_WIRE_KINDS: Final[dict[type, WireIdKind]] = {bytes: WireIdKind.BYTES, UuidId: WireIdKind.UUID, IntId: WireIdKind.INT}


@dataclass(slots=True, eq=False)
class IdColumns:
    """Ids as columns: pairs of 64 bits (n, 2), validity (n,), kinds (n,), and texts in UTF-8 or None.

    Invalid ids are zeros; ``bad_types`` names their types.
    """

    ids: NDArray[np.uint64]
    is_valid: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    texts: Sequence[bytes | None]
    bad_types: set[str] = field(default_factory=set)


def encode_ids(message_ids: Sequence[object]) -> IdColumns:
    """Encode ids as columns; never raise, whatever a host's own classes do."""
    kinds = set(map(type, message_ids))
    if len(kinds) == 1:
        # One id may be broken or out of range: it is found below, by encoding each.
        with suppress(Exception):
            if (found := _encode_same_type(kinds.pop(), message_ids)) is not None:
                return found
    return _encode_each(message_ids)


def _encode_same_type(kind: type, message_ids: Sequence[Any]) -> IdColumns | None:
    """Encode ids of a single type at once; None if the type has no such way."""
    count = len(message_ids)
    if kind is uuid.UUID:
        return _build_same_kind(map(_UUID_BYTES, message_ids), WireIdKind.UUID, count)
    if kind is str:
        texts = [text.encode("utf-8", "surrogatepass") for text in message_ids]
        return _build_same_kind(map(hash_text, texts), WireIdKind.TEXT, count, texts)
    if kind is int:
        return _build_same_kind((number.to_bytes(ID_BYTES) for number in message_ids), WireIdKind.INT, count)
    if kind is TextId:
        return _build_same_kind(message_ids, WireIdKind.TEXT, count, [message_id.text for message_id in message_ids])
    if kind in _WIRE_KINDS and set(map(len, message_ids)) == {ID_BYTES}:
        return _build_same_kind(message_ids, _WIRE_KINDS[kind], count)
    return None


def _build_same_kind(
    packed: Iterable[bytes], kind: WireIdKind, count: int, texts: Sequence[bytes] | None = None
) -> IdColumns:
    ids = np.frombuffer(b"".join(packed), np.uint64).reshape(-1, 2)
    if len(ids) != count:
        raise ValueError(f"{count} ids have {ID_BYTES} bytes each, got {ids.nbytes}")
    every = np.ones(count, bool)
    return IdColumns(ids, every, np.full(count, kind, np.uint8), texts or tuple(repeat(None, count)))


def _describe_bad_id(message_id: object) -> str:
    """Describe an invalid id without its value."""
    kind = type(message_id)
    if kind is bytes:
        return f"{len(message_id)} bytes"  # type: ignore[arg-type]  # of bytes
    return f"{kind.__name__} out of range" if kind is int else kind.__name__


def _encode_each(message_ids: Sequence[object]) -> IdColumns:
    found: list[bytes | None] = []
    kinds = np.zeros(len(message_ids), np.uint8)
    texts: list[bytes | None] = []
    odd: set[str] = set()
    for place, message_id in enumerate(message_ids):
        wire, text = None, None
        try:
            one = encode_id(message_id)  # type: ignore[arg-type]  # a host may pass anything
            # memoryview reads the bytes themselves: a subclass of the host may override its methods.
            wire, text = bytes(memoryview(one.wire)), None if one.text is None else bytes(memoryview(one.text))
            kinds[place] = one.kind
        except Exception:  # noqa: BLE001 - a host's own kind of id may raise anything, and costs its own stamp only
            wire = None
        if wire is None or len(wire) != ID_BYTES:
            wire, text = None, None
            odd.add(_describe_bad_id(message_id))
        found.append(wire)
        texts.append(text)
    can_be = np.array([wire is not None for wire in found], bool)
    packed = b"".join(wire or bytes(ID_BYTES) for wire in found)
    return IdColumns(np.frombuffer(packed, np.uint64).reshape(-1, 2), can_be, kinds, texts, odd)
