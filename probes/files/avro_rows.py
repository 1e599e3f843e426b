"""Rows of Avro object container files: a block is unpacked at once, and its records are walked by compiled code."""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from isal import isal_zlib
from numpy.typing import NDArray

from hopwatch.probes.files import avro_program
from hopwatch.probes.files.arrow_values import build_column, build_validity
from hopwatch.probes.files.avro_program import ABSENT, SchemaProgram, Slot, gather_bytes, walk_records
from hopwatch.probes.files.errors import CutError, UnreadableFileError
from hopwatch.probes.files.file_columns import ColumnMapping
from hopwatch.probes.files.prefetch import prefetch
from hopwatch.probes.files.rows import RawColumns
from hopwatch.probes.files.source import ByteStream, describe_error
from hopwatch.probes.files.table_rows import slice_rows
from hopwatch.probes.taps.avro import WriterSchema

MAGIC: Final = b"Obj\x01"
SYNC_BYTES: Final = 16
MAX_BLOCK_BYTES: Final = 256 * 1024 * 1024
MAX_BLOCK_RECORDS: Final = 2**26
MAX_HEADER_BYTES: Final = 16 * 1024 * 1024
READ_BYTES: Final = 1024 * 1024
CHECKSUM_BYTES: Final = 4
CONTINUES: Final = 0x80
"""Bit of a byte that says that a number goes on."""
MAX_SHIFT: Final = 63
_DEFLATE_ERROR: Final = cast("type[Exception]", isal_zlib.error)

_TIMESTAMPS: Final = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}
_LOCAL: Final = "local-"


class _Cursor:
    """Reader of a container's own numbers and pieces."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._data, self._at = stream, b"", 0

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data) and not self._fill(1)

    def take(self, size: int) -> bytes:
        if not self._fill(size):
            raise CutError("it ends in the middle of a block", b"")
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece

    def take_long(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < CONTINUES:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > MAX_SHIFT:
                raise CutError("a length in it is none", b"")

    def _fill(self, size: int) -> bool:
        """Return whether so many bytes are there."""
        if len(self._data) - self._at < size:
            parts = [self._data[self._at :]]
            there = len(parts[0])
            while there < size and (part := self._stream.read(max(READ_BYTES, size - there))):
                parts.append(part)
                there += len(part)
            self._data, self._at = b"".join(parts), 0
        return len(self._data) - self._at >= size


def read_avro_rows(
    stream: ByteStream, mapping: ColumnMapping, on_schema: Callable[[str], object] = len
) -> Iterator[RawColumns]:
    """Yield the rows of a container file; ``on_schema`` is called before with the name of its schema.

    Raises:
        MappingError: a column is not there.
        UnreadableFileError: its header cannot be read.
        CutError: it is cut, or broken; the rows before came.
    """
    cursor = _Cursor(stream)
    try:
        header, sync = _read_header(cursor)
    except CutError:
        raise UnreadableFileError("its header is cut") from None
    schema = avro_program.parse_schema(header.get("avro.schema", b""))
    program = avro_program.compile_schema(schema, mapping.columns)
    on_schema(_name_schema(schema))
    unpack = _choose_codec(header.get("avro.codec", b"null").decode("ascii", "replace"))
    cut: list[CutError] = []
    for table in slice_rows(_iter_batches(cursor, sync, program, unpack, cut)):
        yield {name: table.column(name) for name in mapping.columns}
    if cut:
        raise cut[0]


def _name_schema(schema: Any) -> str:  # noqa: ANN401 - JSON
    """Return the first digits of a schema's fingerprint; nothing of one that has none."""
    try:
        return WriterSchema(schema).label
    except ValueError:
        return ""


def _read_header(cursor: _Cursor) -> tuple[dict[str, bytes], bytes]:
    cursor.take(len(MAGIC))
    found: dict[str, bytes] = {}
    left = MAX_HEADER_BYTES
    while (count := cursor.take_long()) != 0:
        if count < 0:
            cursor.take_long()
        for _ in range(abs(count)):
            pieces = []
            for _ in range(2):
                size = cursor.take_long()
                left -= size
                if size < 0 or left < 0:
                    raise UnreadableFileError("its header is too large")
                pieces.append(cursor.take(size))
            found[pieces[0].decode("utf-8", "replace")] = pieces[1]
    return found, cursor.take(SYNC_BYTES)


def _choose_codec(name: str) -> Callable[[bytes], bytes]:
    codecs: dict[str, Callable[[bytes], bytes]] = {
        "null": lambda data: data,
        "deflate": _inflate,
        "snappy": _unpack_snappy,
        "zstandard": _unpack_zstd,
        "bzip2": lambda data: _unpack_whole(bz2.BZ2Decompressor(), data),
        "xz": lambda data: _unpack_whole(lzma.LZMADecompressor(), data),
    }
    if name not in codecs:
        raise UnreadableFileError(f"its codec {name!r:.40} is not known, but {', '.join(codecs)}")
    return codecs[name]


def _inflate(data: bytes) -> bytes:
    unpacked: bytes = isal_zlib.decompressobj(-15).decompress(data, MAX_BLOCK_BYTES + 1)
    if len(unpacked) > MAX_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return unpacked


def _unpack_zstd(data: bytes) -> bytes:
    stream = pa.CompressedInputStream(pa.BufferReader(data), "zstd")
    unpacked = bytearray()
    while part := stream.read(READ_BYTES):
        unpacked += part
        if len(unpacked) > MAX_BLOCK_BYTES:
            raise ValueError("a block is too large")
    return bytes(unpacked)


def _unpack_whole(unpacking: bz2.BZ2Decompressor | lzma.LZMADecompressor, data: bytes) -> bytes:
    unpacked = unpacking.decompress(data, MAX_BLOCK_BYTES + 1)
    if len(unpacked) > MAX_BLOCK_BYTES:
        raise ValueError("a block is too large")
    if not unpacking.eof:
        raise EOFError("its packed bytes are cut")
    return unpacked


def _unpack_snappy(data: bytes) -> bytes:
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < CONTINUES:
            break
    if size > MAX_BLOCK_BYTES:
        raise ValueError("a block is too large")
    return bytes(pa.Codec("snappy").decompress(data[:-CHECKSUM_BYTES], size, asbytes=True))


def _iter_batches(
    cursor: _Cursor, sync: bytes, program: SchemaProgram, unpack: Callable[[bytes], bytes], cut: list[CutError]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of each block; what ends them early is noted, so that those before it are counted."""
    steps = np.array(program.steps, np.int64).reshape(-1, 4)
    targets = np.array(program.targets, np.int64)
    try:
        # Unpacking is half of the work: a thread of its own does it.
        with closing(prefetch(_iter_blocks(cursor, sync, unpack))) as blocks:
            for number, count, data in blocks:
                yield _read_block(data, steps, targets, program, count, number)
    except CutError as error:
        cut.append(error)


def _iter_blocks(
    cursor: _Cursor, sync: bytes, unpack: Callable[[bytes], bytes]
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Yield number, count of records and bytes of each block that has some.

    Raises:
        CutError: the file ends in one, or one is broken.
    """
    number = 0
    while not cursor.is_over:
        number += 1
        count, size = cursor.take_long(), cursor.take_long()
        if not 0 <= count <= MAX_BLOCK_RECORDS or not 0 <= size <= MAX_BLOCK_BYTES:
            raise CutError(f"block {number:,} says that it has {count} records in {size} bytes", b"")
        packed = cursor.take(size)
        if cursor.take(SYNC_BYTES) != sync:
            raise CutError(f"block {number:,} is broken: the marker behind it is another one", b"")
        try:
            data = unpack(packed)
        except (_DEFLATE_ERROR, lzma.LZMAError, EOFError, OSError, ValueError, pa.ArrowException) as error:
            raise CutError(f"block {number:,} cannot be unpacked ({describe_error(error)})", b"") from None
        if count:
            yield number, count, np.frombuffer(data, np.uint8)


def _read_block(  # noqa: PLR0913, PLR0917 - a block, and how it is read
    data: NDArray[np.uint8],
    steps: NDArray[np.int64],
    targets: NDArray[np.int64],
    program: SchemaProgram,
    count: int,
    number: int,
) -> pa.RecordBatch:
    shape = len(program.slots), count
    kinds, values, sizes = np.full(shape, ABSENT, np.int8), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    whole = walk_records(data, steps, targets, kinds, values, sizes)
    if whole != count:
        raise CutError(f"block {number:,} does not hold the {count:,} records that it says", b"")
    names = list(program.slots)
    columns = [
        _build_column(data, slot, kinds[place], values[place], sizes[place])
        for place, slot in enumerate(program.slots.values())
    ]
    return pa.RecordBatch.from_arrays(columns, names)


def _build_column(
    data: NDArray[np.uint8],
    slot: Slot,
    kinds: NDArray[np.int8],
    values: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> pa.Array:
    """Return one value of each record as a column of the schema's type.

    Raises:
        UnreadableFileError: it is of several types.
    """
    types = [told for told in slot.types if told["type"] != "null"]
    if len(types) != 1:
        given = " and ".join(str(told["type"]) for told in types) or "null"
        raise UnreadableFileError(f"a column is {given} in its schema: an id or a time has one type")
    (told,) = types
    kind, logical = told["type"], told.get("logicalType", "")
    is_absent = kinds == ABSENT
    if kind == "enum":
        symbols = pa.array([*told["symbols"], None], pa.string())
        places = np.where(is_absent | (values < 0) | (values >= len(told["symbols"])), len(told["symbols"]), values)
        return symbols.take(build_column(places, pa.int64(), np.zeros(len(places), bool)))
    if kind in {"int", "long"}:
        numbers = build_column(values, pa.int64(), is_absent)
        if unit := _TIMESTAMPS.get(logical.removeprefix(_LOCAL)):
            return numbers.cast(pa.timestamp(unit, None if logical.startswith(_LOCAL) else "UTC"))
        return numbers
    sizes = np.where(is_absent, 0, sizes)
    packed = np.empty(int(sizes.sum()), np.uint8)
    gather_bytes(data, values, sizes, packed)
    if kind in {"float", "double", "boolean"}:
        dtype = {"float": "<f4", "double": "<f8", "boolean": "?"}[kind]
        full = np.zeros(len(kinds), dtype)
        full[~is_absent] = packed.view(dtype)
        return pa.array(full, mask=is_absent)
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(kinds), [build_validity(is_absent), pa.py_buffer(ends), pa.py_buffer(packed)]
    )
