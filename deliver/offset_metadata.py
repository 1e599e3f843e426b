"""Encoding of the offsets that are settled beyond a committed one, as the metadata of that commit. Pure.

The text is ``hw1``, a letter, and base64 of a CRC-32 and the payload: of ``b`` a bitmap, whose bit ``i`` is the offset
``i`` behind the committed one, of ``r`` runs, lengths of unsettled and settled offsets in turn, as varints. The one
that holds more is taken, and of two that hold as much the shorter. What does not fit is left out from the highest
offset down, and its messages are sent again. The checksum is of the committed offset too: what is damaged, stands at
another offset or is another program's holds nothing, as a message that counted as settled by mistake would be lost.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

MAX_METADATA_CHARS: Final = 4_096
"""Default of the brokers' ``offset.metadata.max.bytes``."""
_PREFIX: Final = "hw1"
_BITMAP: Final = "b"
_RUNS: Final = "r"
_CRC_BYTES: Final = 4
_MAX_OFFSET: Final = 2**63


def encode_settled(position: int, settled: Sequence[range], max_chars: int = MAX_METADATA_CHARS) -> str:
    """Encode settled offsets behind a committed ``position``, as ascending ranges; empty if there is none, or no room.

    Raises:
        ValueError: the ranges are not ascending, overlap, or begin before the position.
    """
    _check_ranges(position, settled)
    max_bytes = max((max_chars - len(_PREFIX) - 1) * 3 // 4 - _CRC_BYTES, 0)
    bitmap, count_in_bitmap = _encode_bitmap(position, settled, max_bytes)
    runs, count_in_runs = _encode_runs(position, settled, max_bytes)
    if max(count_in_bitmap, count_in_runs) == 0:
        return ""
    if (count_in_bitmap, -len(bitmap)) > (count_in_runs, -len(runs)):
        return _seal(_BITMAP, position, bitmap)
    return _seal(_RUNS, position, runs)


def decode_settled(position: int, metadata: str) -> list[range]:
    """Decode the settled offsets, as ascending ranges that do not touch; none for any other text."""
    kind, sealed = metadata[len(_PREFIX) : len(_PREFIX) + 1], metadata[len(_PREFIX) + 1 :]
    if not metadata.startswith(_PREFIX) or kind not in {_BITMAP, _RUNS} or len(metadata) > MAX_METADATA_CHARS:
        return []
    try:
        opened = base64.b64decode(sealed + "=" * (-len(sealed) % 4), validate=True)
    except (binascii.Error, ValueError):
        return []
    payload = opened[_CRC_BYTES:]
    if opened[:_CRC_BYTES] != _checksum(kind, position, payload):
        return []
    return list(_decode_bitmap(position, payload) if kind == _BITMAP else _decode_runs(position, payload))


def _check_ranges(position: int, settled: Sequence[range]) -> None:
    if any(one.step != 1 or not one for one in settled) or any(a.stop > b.start for a, b in pairwise(settled)):
        raise ValueError(f"settled offsets are ascending ranges, got {settled!r:.200}")
    if settled and not 0 <= position <= settled[0].start:
        raise ValueError(f"settled offsets lie behind the committed one, got {settled[0].start} behind {position}")


def _seal(kind: str, position: int, payload: bytes) -> str:
    sealed = base64.b64encode(_checksum(kind, position, payload) + payload).decode().rstrip("=")
    return f"{_PREFIX}{kind}{sealed}"


def _checksum(kind: str, position: int, payload: bytes) -> bytes:
    return zlib.crc32(payload, zlib.crc32(f"{kind}{position}".encode())).to_bytes(_CRC_BYTES)


def _encode_bitmap(position: int, settled: Sequence[range], max_bytes: int) -> tuple[bytes, int]:
    bits, count, end = 0, 0, position + 8 * max_bytes
    for one in settled:
        stop = min(one.stop, end)
        if stop <= one.start:
            break
        bits |= ((1 << (stop - one.start)) - 1) << (one.start - position)
        count += stop - one.start
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little"), count


def _decode_bitmap(position: int, payload: bytes) -> Iterator[range]:
    bits, at = int.from_bytes(payload, "little"), position
    while bits:
        gap = (bits & -bits).bit_length() - 1
        bits >>= gap
        run = (~bits & (bits + 1)).bit_length() - 1
        bits >>= run
        yield range(at + gap, at + gap + run)
        at += gap + run


def _encode_runs(position: int, settled: Sequence[range], max_bytes: int) -> tuple[bytes, int]:
    payload, count, at = bytearray(), 0, position
    for one in settled:
        pair = _encode_varint(one.start - at) + _encode_varint(len(one))
        if len(payload) + len(pair) > max_bytes:
            break
        payload += pair
        count += len(one)
        at = one.stop
    return bytes(payload), count


def _decode_runs(position: int, payload: bytes) -> Iterator[range]:
    at, start, varint, shift, is_run = position, position, 0, 0, False
    for byte in payload:
        varint |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            continue
        at += varint
        if is_run and start < at < _MAX_OFFSET:
            yield range(start, at)
        start, varint, shift, is_run = at, 0, 0, not is_run


def _encode_varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte, the eighth says that more follow
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
