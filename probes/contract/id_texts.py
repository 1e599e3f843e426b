"""Texts of a batch's ids on the wire: concatenated, with the end of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hopwatch.probes.contract.body import RecordError
from hopwatch.probes.contract.limits import MAX_ID_TEXT_CHARS

_MAX_CHAR_BYTES = 4
_CONTINUES, _CONTINUATION = 0xC0, 0x80
"""Bits of a UTF-8 byte that mark a continuation byte."""


def join_texts(texts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Return UTF-8 texts in wire format: concatenated, and the end of each."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    return b"".join(texts), np.cumsum(lengths).astype("<u4").tobytes()


def get_text(texts: bytes | NDArray[np.uint8], ends: NDArray[np.unsignedinteger], place: int) -> bytes:
    """Return the text of the id at an index."""
    return bytes(texts[int(ends[place - 1]) if place else 0 : int(ends[place])])


def check_texts(texts: NDArray[np.uint8], ends: NDArray[np.unsignedinteger]) -> None:
    """Check that the ends ascend, that the last is the end of the bytes, and that no text is too long.

    UTF-8 is checked only where a text is displayed: a monitor reads a thousand for each that it shows.

    Raises:
        RecordError: one of these does not hold.
    """
    if not len(ends):
        if len(texts):
            raise RecordError("bad_length", f"id_texts is empty where id_text_ends is, got {len(texts)} bytes")
        return
    lengths = np.diff(ends.astype(np.int64), prepend=0)
    if (least := int(lengths.min())) < 0:
        raise RecordError("bad_value", f"id_text_ends ascends, got an end {-least} bytes before the one before it")
    if int(ends[-1]) != len(texts):
        raise RecordError("bad_length", f"the last text ends with id_texts at {len(texts)}, got {int(ends[-1])}")
    if int(lengths.max()) <= MAX_ID_TEXT_CHARS:
        return
    for place in np.flatnonzero(lengths > MAX_ID_TEXT_CHARS).tolist():
        end = int(ends[place])
        text = texts[end - int(lengths[place]) : end]
        # Count at most so many bytes, whatever the length says.
        chars = np.count_nonzero(text[: _MAX_CHAR_BYTES * MAX_ID_TEXT_CHARS + 1] & _CONTINUES != _CONTINUATION)
        if chars > MAX_ID_TEXT_CHARS or len(text) > _MAX_CHAR_BYTES * MAX_ID_TEXT_CHARS:
            told = f"the text of an id has at most {MAX_ID_TEXT_CHARS} characters"
            raise RecordError("bad_length", f"{told}, got one of {len(text)} bytes")
