"""Source of a file's bytes: a path or a URL, plain or compressed, with its identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs

from hopwatch.probes.files.errors import CutError, UnreadableFileError

VERSION: Final = 1
"""Version of the way in which files become batches: another one makes other accounts."""
PRINT_BYTES: Final = 8
READ_BYTES: Final = 4 * 1024 * 1024
SMALL_READ_BYTES: Final = 4_096
"""Bytes that are decompressed at once: what a cut stream holds at its end is lost up to so many."""

_MAGICS: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
MAGIC_BYTES: Final = 4


@dataclass(slots=True)
class SourceFile:
    """File to import: its name, and how to open it anew."""

    name: str
    open: Callable[[], Any]

    def compute_print(self, mapping: str, stop: Callable[[], bool] = lambda: False) -> tuple[str, int]:
        """Return the print of the file's content and of how it is read, and its size in bytes.

        Raises:
            UnreadableFileError: it cannot be read.
        """
        told = blake2b(f"{VERSION} {mapping} ".encode(), digest_size=PRINT_BYTES)
        size = 0
        with self.opened() as file:
            while not stop() and (data := _read(file, READ_BYTES)):
                told.update(data)
                size += len(data)
        return told.hexdigest(), size

    def opened(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Return the file, opened.

        Raises:
            UnreadableFileError: it cannot be opened.
        """
        try:
            return self.open()
        except (OSError, pa.ArrowException) as error:
            raise UnreadableFileError(describe_error(error)) from None


def describe_error(error: BaseException) -> str:
    """Describe why a file cannot be read, in one line."""
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(told).split())[:200]


def _read(file: Any, size: int) -> bytes:  # noqa: ANN401 - pyarrow has no types
    try:
        return bytes(file.read(size))
    except (OSError, pa.ArrowException) as error:
        raise UnreadableFileError(describe_error(error)) from None


def open_source(place: str) -> SourceFile:
    """Return the file at a path, or at a URL that PyArrow knows, such as ``s3://bucket/name``.

    Raises:
        UnreadableFileError: no file system is known by the URL.
    """
    if "://" not in place:
        if Path(place).exists() and not Path(place).is_file():
            raise UnreadableFileError("it is no regular file")
        return SourceFile(place, lambda: pa.OSFile(place, "rb"))
    try:
        system, path = pafs.FileSystem.from_uri(place)
    except (OSError, pa.ArrowException, ValueError) as error:
        raise UnreadableFileError(describe_error(error)) from None
    return SourceFile(place, lambda: system.open_input_file(path))


class ByteStream:
    """Bytes of a file, decompressed; ``position`` is how far the file itself was read."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        """Tell by the first bytes whether, and how, they are compressed."""
        self.file = file
        magic = _read(file, MAGIC_BYTES)
        file.seek(0)
        found = next((name for start, name in _MAGICS.items() if magic.startswith(start)), None)
        self.is_compressed = found is not None
        self._stream = pa.CompressedInputStream(file, found) if found else file

    @property
    def position(self) -> int:
        """Return how many bytes of the file were read."""
        return int(self.file.tell())

    def read(self, size: int) -> bytes:
        """Return so many bytes; fewer at the end.

        Raises:
            CutError: the compressed stream is cut, or broken; ``args[1]`` holds what was read before.
        """
        if not self.is_compressed:
            return _read(self._stream, size)
        parts: list[bytes] = []
        left = size
        while left:
            try:
                part = bytes(self._stream.read(min(left, SMALL_READ_BYTES)))
            except (OSError, pa.ArrowException) as error:
                why = f"its compressed bytes end before their end ({describe_error(error)})"
                raise CutError(why, b"".join(parts)) from None
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def iter_line_blocks(stream: ByteStream, block_bytes: int = READ_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines, and how many lines before each were too long; the last line may lack its newline.

    A line of ``block_bytes`` or more is skipped. Where blocks end is a matter of the content alone.

    Raises:
        CutError: the stream is cut; its whole lines came before.
    """
    rest, is_skipping, skipped, cut = b"", False, 0, None
    while cut is None:
        try:
            data = stream.read(block_bytes - len(rest))
            is_end = len(data) < block_bytes - len(rest)
        except CutError as error:
            cut, data, is_end = error, error.args[1], True
        buffer = rest + data
        if is_skipping:
            newline = buffer.find(b"\n")
            is_skipping = newline < 0
            buffer = buffer[newline + 1 :] if newline >= 0 else b""
        last = buffer.rfind(b"\n")
        if last < 0 and len(buffer) >= block_bytes:
            skipped, is_skipping, last, buffer = skipped + 1, True, -1, b""
        if last >= 0:
            yield buffer[: last + 1], skipped
            skipped = 0
        rest = buffer[last + 1 :]
        if is_end:
            break
    if cut is not None:
        if skipped:
            yield b"", skipped
        raise cut
    if rest or skipped:
        yield rest, skipped
