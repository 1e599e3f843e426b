"""Reader of Avro object container files: header and blocks, with a bound for what they unpack to.

It follows "Object Container Files" of the Avro specification. Nothing is allocated by a length that the file only
claims: a length beyond the bytes that are left is refused, and unpacking stops at the bound.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from hopwatch.gate import avro_body as bodies
from hopwatch.gate.avro_body import AvroInput, UnreadableError

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
MAX_SCHEMA_BYTES: Final = 64 * 1024
"""Maximum size of the schema in a file: it is parsed anew for each that is not known yet."""
_CHECKSUM_BYTES: Final = 4
"""Bytes that may follow what is packed: some libraries leave a part of zlib's checksum there."""
_MAX_WINDOW_BITS: Final = -15
"""Deflate without a header, as Avro has it."""


class ContainerError(ValueError):
    """Bytes that are no container file, or one that is refused."""


class TooLargeError(ContainerError):
    """File whose blocks unpack to more than is allowed."""


class ContainerBlock(NamedTuple):
    """Block of a file: the number of its values, and their bytes, unpacked."""

    values: int
    data: bytes


class ContainerFile:
    """Container file: the schema that wrote it, and its blocks."""

    def __init__(self, data: bytes) -> None:
        """Read the header.

        Raises:
            ContainerError: there is none, or its codec is not known.
        """
        if not data.startswith(MAGIC):
            raise ContainerError(f"it begins with {MAGIC.hex()}, got {data[: len(MAGIC)].hex() or 'nothing'}")
        self._body = AvroInput(data, len(MAGIC))
        try:
            metadata = self._read_metadata()
            self._sync = self._body.read(SYNC_BYTES)
        except (UnreadableError, IndexError) as error:
            raise ContainerError(f"its header cannot be read: {error}") from None
        if (schema := metadata.get("avro.schema")) is None:
            raise ContainerError("its header has no avro.schema")
        if len(schema) > MAX_SCHEMA_BYTES:
            raise ContainerError(f"its schema has at most {MAX_SCHEMA_BYTES:,} bytes, got {len(schema):,}")
        self.schema = schema
        codec = metadata.get("avro.codec", b"null")
        if codec not in {b"null", b"deflate"}:
            raise ContainerError(f"its codec is null or deflate, got {codec[:20]!r}")
        self._is_packed = codec == b"deflate"

    def read_blocks(self, max_bytes: int) -> Iterator[ContainerBlock]:
        """Yield the blocks, which unpack to so many bytes at most.

        Raises:
            TooLargeError: they unpack to more.
            ContainerError: a block is broken.
        """
        body, left = self._body, max_bytes
        while body.position < len(body.data):
            start = body.position
            try:
                count, data = bodies.read_long(body), bodies.read_bytes(body)
                if body.read(SYNC_BYTES) != self._sync:
                    raise UnreadableError("it does not end with the file's mark")  # noqa: TRY301 - one sentence of many
                plain = self._unpack(data, left)
            except (UnreadableError, IndexError, zlib.error) as error:
                raise ContainerError(f"the block at byte {start:,} cannot be read: {error}") from None
            left -= len(plain)
            if left < 0:
                raise TooLargeError(f"its blocks unpack to at most {max_bytes:,} bytes, got more")
            if count < 0:
                raise ContainerError(f"the block at byte {start:,} says that it has {count} values")
            yield ContainerBlock(count, plain)

    def _read_metadata(self) -> dict[str, bytes]:
        found = {}
        while count := bodies.read_block_count(self._body):
            for _ in range(count):
                name = bodies.read_text(self._body)
                found[name] = bodies.read_bytes(self._body)
        return found

    def _unpack(self, data: bytes, left: int) -> bytes:
        """Return the bytes of a block; of one that is too long one byte more than is left."""
        if not self._is_packed:
            return data
        unpacking = zlib.decompressobj(_MAX_WINDOW_BITS)
        plain = unpacking.decompress(data, left + 1)
        if len(plain) <= left and (not unpacking.eof or len(unpacking.unused_data) > _CHECKSUM_BYTES):
            raise UnreadableError("it is not packed by deflate, or cut")
        return plain
