"""Names of messages: the kind of each id, and the text of a text id.

Sets know sixteen bytes alone. Kinds and texts are looked up for the few ids that are shown.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hopwatch.monitor.kernel.masks import Ids
from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import hash_text

MAX_TEXT_BYTES: Final = 256
"""A text that is longer is not kept with the ids that were lost: it is shown as its hash."""
HASH_SUFFIX: Final = " (hash of a text)"
"""Stands behind the hash where the text is not known."""

_TEXT_LEFT_OUT: Final = 5
"""Stands, where names are packed, for the kind of a text that is not known."""
_KINDS: Final = 8
_NO_KIND: Final = 1 << 40


class Names(NamedTuple):
    """Of which kind each of some ids is, shape (n,), and the UTF-8 of each text, None of what has none, (n,)."""

    kinds: NDArray[np.uint8]
    texts: NDArray[np.object_]

    def taken(self, chosen: NDArray[Any]) -> Names:
        """Return the chosen ones, given as a mask or as places."""
        return Names(self.kinds[chosen], self.texts[chosen])


class BatchIds(NamedTuple):
    """Ids of one batch: their kind, and what reads the text at an index, None where there are no texts.

    ``rows`` are the indexes of the chosen observations, None for all.
    """

    node: int
    kind: int
    read_text: Callable[[int], bytes] | None
    rows: NDArray[np.uint16] | None


def unknown_names(count: int) -> Names:
    """Return names of so many ids of which nothing is known but their bytes."""
    return Names(np.full(count, WireIdKind.UNKNOWN, np.uint8), np.full(count, None, object))


def join_names(parts: Sequence[Names]) -> Names:
    """Return names one behind the other."""
    return Names(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def resolve_names(
    ids: Ids, message: NDArray[np.int64], batch: NDArray[np.int64], row: NDArray[np.int64], said: Sequence[BatchIds]
) -> Names:
    """Return the names of some ids.

    Of each observation ``message`` says which one it is of, in order, ``batch`` its place in ``said``, ``row`` its
    place in the batch. A message is of the kind that the first node of the pathway gives which says one; its text is
    any whose hash it is.
    """
    names = unknown_names(len(ids))
    ranks = np.array([_rank(one) for one in said], np.int64)
    if not len(ids) or (ranks >= _NO_KIND).all():
        return names
    first = np.flatnonzero(np.diff(message, prepend=-1))
    kinds = np.minimum.reduceat(ranks[batch], first) % _KINDS
    has_text = np.array([one.read_text is not None for one in said], bool)[batch] & (kinds[message] == WireIdKind.TEXT)
    candidates = zip(*(column[has_text].tolist() for column in (message, batch, row)), strict=True)
    packed = np.ascontiguousarray(ids)
    for place, of_batch, at in candidates:
        _, _, read_text, rows = said[of_batch]
        # The first that is its own counts, and all such are equal.
        if read_text is not None and names.texts[place] is None:
            text = read_text(at if rows is None else int(rows[at]))
            if len(text) <= MAX_TEXT_BYTES and verify_text(packed[place].tobytes(), text) is not None:
                names.texts[place] = text
    return Names(kinds.astype(np.uint8), names.texts)


def pack_names(names: Names) -> tuple[bytes, bytes, bytes]:
    """Return kinds, uint8 each, ends of texts, uint32 each, and the texts end to end."""
    texts = [text or b"" for text in names.texts.tolist()]
    is_left_out = (names.kinds == WireIdKind.TEXT) & np.array([text is None for text in names.texts.tolist()], bool)
    kinds = np.where(is_left_out, _TEXT_LEFT_OUT, names.kinds).astype(np.uint8)
    return kinds.tobytes(), np.cumsum(list(map(len, texts)), dtype="<u4").tobytes(), b"".join(texts)


def unpack_names(kinds: bytes, ends: bytes, texts: bytes) -> Names:
    """Return names that were packed; of texts so many bytes as the ends say are needed."""
    packed = np.frombuffer(kinds, np.uint8)
    found = np.full(len(packed), None, object)
    bounds = [0, *np.frombuffer(ends, "<u4").tolist()]
    for place in np.flatnonzero(packed == WireIdKind.TEXT).tolist():
        found[place] = texts[bounds[place] : bounds[place + 1]]
    return Names(np.where(packed == _TEXT_LEFT_OUT, WireIdKind.TEXT, packed).astype(np.uint8), found)


def format_id(message_id: bytes, kind: int, text: bytes | None = None) -> str:
    """Return an id as it was given: a UUID with hyphens, an integer in decimal, a text as it is, bytes in hexadecimal.

    A text that is not known is shown as its hash, and says so.
    """
    if kind == WireIdKind.UUID:
        return str(uuid.UUID(bytes=bytes(message_id)))
    if kind == WireIdKind.INT:
        return str(int.from_bytes(message_id))
    if kind != WireIdKind.TEXT:
        return bytes(message_id).hex()
    told = verify_text(message_id, text)
    return bytes(message_id).hex() + HASH_SUFFIX if told is None else told


def format_ids(message_ids: NDArray[np.uint64], names: Names) -> tuple[str, ...]:
    """Return ids, shape (n, 2), as :func:`format_id` does each."""
    columns = message_ids, names.kinds.tolist(), names.texts.tolist()
    return tuple(format_id(one.tobytes(), kind, text) for one, kind, text in zip(*columns, strict=True))


def verify_text(message_id: bytes, text: bytes | None) -> str | None:
    """Return a text if it is the id's own and can be read; a batch may say anything."""
    if text is None or hash_text(text) != message_id:
        return None
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _rank(one: BatchIds) -> int:
    """Return a number that is the lower the earlier in the pathway a kind was said; its rest is the kind."""
    said = one.node * _KINDS + one.kind
    return said if one.kind != WireIdKind.UNKNOWN else _NO_KIND + WireIdKind.UNKNOWN
