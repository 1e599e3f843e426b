"""Message ids of an Arrow column, in wire format."""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hopwatch.probes.contract.batch import WireIdKind
from hopwatch.probes.contract.ids import IntId, TextId, UuidId, hash_text
from hopwatch.probes.contract.limits import ID_BYTES
from hopwatch.probes.files.arrow_values import find_nulls, get_numbers
from hopwatch.probes.values import MAX_ID_CHARS, IdFormat, build_id_reader

_UUID_CHARS: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_WIDTHS: Final = ("V8", "V4", "V4", "V4", "V12")
_GROUPS: Final = np.dtype({
    "names": [*"abcde"], "formats": _WIDTHS, "offsets": (0, *(place + 1 for place in _DASHES)), "itemsize": _UUID_CHARS,
})  # fmt: skip
_JOINED: Final = np.dtype([*zip("abcde", _WIDTHS, strict=True)])
"""Groups of digits of a UUID's text, with dashes between them and without."""
_IS_HEX: Final = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdefABCDEF", np.uint8))
_SIXTEEN_BYTES: Final = {
    IdFormat.AUTO: WireIdKind.BYTES, IdFormat.BYTES: WireIdKind.BYTES, IdFormat.UUID: WireIdKind.UUID,
}  # fmt: skip
"""What ids of sixteen bytes are taken for, as a file's own type has them."""
_KINDS: Final[dict[type, WireIdKind]] = {UuidId: WireIdKind.UUID, IntId: WireIdKind.INT, TextId: WireIdKind.TEXT}


@dataclass(slots=True, eq=False)
class IdValues:
    """Ids as pairs of 64 bits (n, 2), their kinds (n,), which are absent and which valid, and texts, b"" of none."""

    ids: NDArray[np.uint64]
    kinds: NDArray[np.uint8]
    is_absent: NDArray[np.bool_]
    is_valid: NDArray[np.bool_]
    texts: Sequence[bytes] = ()


def read_ids(column: pa.Array, kind: IdFormat) -> IdValues:
    """Return the ids of a column, as a tap reads each of them."""
    column = _simplify(column)
    absent = find_nulls(column)
    if pa.types.is_integer(column.type) and kind in {IdFormat.AUTO, IdFormat.INT}:
        return _read_integers(column, absent)
    if pa.types.is_fixed_size_binary(column.type) and column.type.byte_width == ID_BYTES and kind in _SIXTEEN_BYTES:
        return _read_sixteen_bytes(column, absent, _SIXTEEN_BYTES[kind])
    if isinstance(column.type, pa.UuidType) and kind in {IdFormat.AUTO, IdFormat.UUID}:
        return _read_sixteen_bytes(column.storage, absent, WireIdKind.UUID)
    if kind in {IdFormat.AUTO, IdFormat.UUID, IdFormat.TEXT} and (texts := _as_texts(column, kind)) is not None:
        return _read_texts(texts, absent, kind)
    return _read_each(column, absent, kind)


def _simplify(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without dictionaries and long offsets."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    if pa.types.is_large_binary(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.binary())
    return column


def _read_integers(column: pa.Array, absent: NDArray[np.bool_]) -> IdValues:
    numbers = get_numbers(column, 0)
    pairs = np.zeros((len(numbers), 2), ">u8")
    pairs[:, 1] = numbers
    kinds = np.full(len(numbers), WireIdKind.INT, np.uint8)
    return IdValues(pairs.view(np.uint64), kinds, absent, ~absent & (numbers >= 0))


def _read_sixteen_bytes(column: pa.Array, absent: NDArray[np.bool_], kind: WireIdKind) -> IdValues:
    filled = column.fill_null(bytes(ID_BYTES)) if column.null_count else column
    data = filled.buffers()[1]
    packed = np.frombuffer(data, np.uint8)[filled.offset * ID_BYTES : (filled.offset + len(filled)) * ID_BYTES]
    ids = np.ascontiguousarray(packed).view(np.uint64).reshape(-1, 2)
    return IdValues(ids, np.full(len(ids), kind, np.uint8), absent, ~absent)


def _as_texts(column: pa.Array, kind: IdFormat) -> pa.Array | None:
    """Return a column as texts; None if it has none, or some that are no UTF-8."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type) and kind is IdFormat.TEXT:
        return column.cast(pa.string())
    if not pa.types.is_binary(column.type):
        return None
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return None


def _read_texts(column: pa.Array, absent: NDArray[np.bool_], kind: IdFormat) -> IdValues:
    count = len(column)
    ids, is_uuid = np.zeros((count, 2), np.uint64), np.zeros(count, bool)
    if kind is not IdFormat.TEXT:
        ids, is_uuid = _read_uuids(column, absent)
    kinds = np.full(count, WireIdKind.UUID, np.uint8)
    if kind is IdFormat.UUID or (is_uuid | absent).all():
        return IdValues(ids, kinds, absent, is_uuid)
    kinds[~is_uuid] = WireIdKind.TEXT
    chars = get_numbers(pc.utf8_length(column), 0)
    is_text = ~absent & ~is_uuid & (chars > 0) & (chars <= MAX_ID_CHARS)
    texts: list[bytes] = column.cast(pa.binary()).fill_null(b"").to_pylist()
    if is_text.all():
        hashed = b"".join(map(hash_text, texts))
        return IdValues(np.frombuffer(hashed, np.uint64).reshape(-1, 2), kinds, absent, is_text, texts)
    texts = [text if is_one else b"" for text, is_one in zip(texts, is_text.tolist(), strict=True)]
    hashed = b"".join(hash_text(text) for text in texts if text)
    ids[is_text] = np.frombuffer(hashed, np.uint64).reshape(-1, 2)
    return IdValues(ids, kinds, absent, is_uuid | is_text, texts)


def _read_uuids(column: pa.Array, absent: NDArray[np.bool_]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the ids of texts in the form of a UUID, zeros of others, and which these are."""
    count = len(column)
    ids = np.zeros((count, 2), np.uint64)
    if not count:
        return ids, np.zeros(0, bool)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + count + 1].astype(np.int64)
    fits = (np.diff(ends) == _UUID_CHARS) & ~absent
    if not fits.any():
        return ids, fits
    raw = np.frombuffer(data, np.uint8)
    if fits.all():
        chars = raw[ends[0] : ends[-1]].reshape(-1, _UUID_CHARS)
    else:
        chars = raw[ends[:-1][fits][:, None] + np.arange(_UUID_CHARS)]
    is_uuid = np.logical_and.reduce([chars[:, place] == ord("-") for place in _DASHES])
    digits = _drop_dashes(chars)
    try:
        packed = np.frombuffer(unhexlify(digits.data), np.uint64).reshape(-1, 2)
    except ValueError:
        # Some are no digits: those texts are found, and read as zeros.
        is_uuid &= _IS_HEX[digits].all(axis=1)
        digits[~is_uuid] = ord("0")
        packed = np.frombuffer(unhexlify(digits.data), np.uint64).reshape(-1, 2)
    if is_uuid.all() and fits.all():
        return packed, fits
    ids[fits] = np.where(is_uuid[:, None], packed, 0)
    found = fits.copy()
    found[fits] = is_uuid
    return ids, found


def _drop_dashes(chars: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the 32 digits of texts of 36."""
    given, digits = np.ascontiguousarray(chars).reshape(-1).view(_GROUPS), np.empty(len(chars), _JOINED)
    for name in _JOINED.names or ():
        digits[name] = given[name]
    return digits.view(np.uint8).reshape(-1, _UUID_CHARS - len(_DASHES))


def _read_each(column: pa.Array, absent: NDArray[np.bool_], kind: IdFormat) -> IdValues:
    """Return ids that have no way at once: broken ones, and numbers in texts."""
    read, count = build_id_reader(kind), len(column)
    values: list[Any] = column.to_pylist()
    ids, kinds = np.zeros((count, ID_BYTES), np.uint8), np.zeros(count, np.uint8)
    valid, texts = np.zeros(count, bool), [b""] * count
    for place in np.flatnonzero(~absent).tolist():
        try:
            found = read(values[place])
        except ValueError:
            continue
        ids[place], kinds[place], valid[place] = np.frombuffer(found, np.uint8), _KINDS.get(type(found), 0), True
        if isinstance(found, TextId):
            texts[place] = found.text
    return IdValues(ids.view(np.uint64).reshape(-1, 2), kinds, absent, valid, texts if any(texts) else ())
