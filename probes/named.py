"""Ids of many messages at once, as the wire has them: the bytes of each, of which kind it is, and the texts."""

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

from hopwatch.probes.contract.batch import IdKind
from hopwatch.probes.contract.ids import IntId, TextId, UuidId, digest, named
from hopwatch.probes.contract.limits import ID_BYTES

NO_TEXT: Final = -1
"""The place among texts of what has none."""
_UUID_BYTES: Final = attrgetter("bytes")
_OF_WIRE: Final[dict[type, IdKind]] = {bytes: IdKind.BYTES, UuidId: IdKind.UUID, IntId: IdKind.INT}


@dataclass(slots=True, eq=False)
class NamedIds:
    """Ids as columns: pairs of 64 bits (n, 2), whether each can be (n,), kinds (n,), texts in UTF-8, None without one.

    What cannot be is zeros; ``odd`` names the types that it was of.
    """

    ids: NDArray[np.uint64]
    can_be: NDArray[np.bool_]
    kinds: NDArray[np.uint8]
    texts: Sequence[bytes | None]
    odd: set[str] = field(default_factory=set)


def of(message_ids: Sequence[object]) -> NamedIds:
    """Return ids as columns; nothing that a host's own classes do can raise."""
    kinds = set(map(type, message_ids))
    if len(kinds) == 1:
        # One of them may be broken or out of range: it is found below, by itself.
        with suppress(Exception):
            if (found := _of_one_type(kinds.pop(), message_ids)) is not None:
                return found
    return _each(message_ids)


def _of_one_type(kind: type, message_ids: Sequence[Any]) -> NamedIds | None:
    """Return ids that are all of one type, the quick way; None where there is no such way."""
    count = len(message_ids)
    if kind is uuid.UUID:
        return _alike(map(_UUID_BYTES, message_ids), IdKind.UUID, count)
    if kind is str:
        texts = [text.encode("utf-8", "surrogatepass") for text in message_ids]
        return _alike(map(digest, texts), IdKind.TEXT, count, texts)
    if kind is int:
        return _alike((number.to_bytes(ID_BYTES) for number in message_ids), IdKind.INT, count)
    if kind is TextId:
        return _alike(message_ids, IdKind.TEXT, count, [message_id.text for message_id in message_ids])
    if kind in _OF_WIRE and set(map(len, message_ids)) == {ID_BYTES}:
        return _alike(message_ids, _OF_WIRE[kind], count)
    return None


def _alike(packed: Iterable[bytes], kind: IdKind, count: int, texts: Sequence[bytes] | None = None) -> NamedIds:
    ids = np.frombuffer(b"".join(packed), np.uint64).reshape(-1, 2)
    if len(ids) != count:
        raise ValueError(f"{count} ids have {ID_BYTES} bytes each, got {ids.nbytes}")
    every = np.ones(count, bool)
    return NamedIds(ids, every, np.full(count, kind, np.uint8), texts or tuple(repeat(None, count)))


def _described(message_id: object) -> str:
    """Return what an id that cannot be is, without what it says."""
    kind = type(message_id)
    if kind is bytes:
        return f"{len(message_id)} bytes"  # type: ignore[arg-type]  # of bytes
    return f"{kind.__name__} out of range" if kind is int else kind.__name__


def _each(message_ids: Sequence[object]) -> NamedIds:
    found: list[bytes | None] = []
    kinds = np.zeros(len(message_ids), np.uint8)
    texts: list[bytes | None] = []
    odd: set[str] = set()
    for place, message_id in enumerate(message_ids):
        wire, text = None, None
        try:
            one = named(message_id)  # type: ignore[arg-type]  # a host may pass anything
            # The bytes themselves: a host's own kind of bytes may say anything of itself.
            wire, text = bytes(memoryview(one.wire)), None if one.text is None else bytes(memoryview(one.text))
            kinds[place] = one.kind
        except Exception:  # noqa: BLE001 - a host's own kind of id may raise anything, and costs its own stamp only
            wire = None
        if wire is None or len(wire) != ID_BYTES:
            wire, text = None, None
            odd.add(_described(message_id))
        found.append(wire)
        texts.append(text)
    can_be = np.array([wire is not None for wire in found], bool)
    packed = b"".join(wire or bytes(ID_BYTES) for wire in found)
    return NamedIds(np.frombuffer(packed, np.uint64).reshape(-1, 2), can_be, kinds, texts, odd)
