"""Rows of JSON lines and CSV: blocks of lines are parsed by Arrow, and what Arrow refuses line by line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from hopwatch.probes.files.errors import CutError, MappingError, UnreadableFileError, describe_missing_column
from hopwatch.probes.files.file_columns import ColumnMapping
from hopwatch.probes.files.rows import BadRows, RawColumns, split_by_type
from hopwatch.probes.files.source import ByteStream, iter_line_blocks
from hopwatch.probes.taps.documents import find_value, parse_path
from hopwatch.probes.values import SkipReason

LEAF_LINES: Final = 128
"""Lines that are parsed one by one, where Arrow refuses them together."""
MAX_INT64: Final = 2**63
DELIMITERS: Final = ",\t;|"
_BOM: Final = b"\xef\xbb\xbf"
_ARROW_TYPES: Final = {str: pa.string(), int: pa.int64(), float: pa.float64()}


class LineParser(Protocol):
    """Parser of the lines of one format."""

    def parse_block(self, block: bytes) -> RawColumns:
        """Parse a block; raise ArrowInvalid where any of it cannot be parsed."""

    def parse_line(self, line: bytes) -> Sequence[Any] | SkipReason:
        """Parse one line to the values of its columns, or say why it cannot be."""


def read_text_rows(stream: ByteStream, mapping: ColumnMapping, *, is_json: bool) -> Iterator[RawColumns | BadRows]:
    """Yield the rows of a file of lines, in its order.

    Raises:
        MappingError: a column is not there.
        CutError: the file is cut: it may end in the middle of a line.
    """
    parser: LineParser | None = None
    for data, skipped in iter_line_blocks(stream):
        block = data.removeprefix(_BOM) if parser is None else data
        if skipped:
            yield BadRows(SkipReason.OVERSIZED, skipped)
        if parser is None:
            if not block.strip():
                continue
            parser = JsonParser(block, mapping) if is_json else None
            if parser is None:
                header, _, block = block.partition(b"\n")
                parser = CsvParser(header, mapping)
        if not block.endswith(b"\n") and block.strip():
            whole, _, last = block.rpartition(b"\n")
            yield from _parse(parser, whole + b"\n")
            if not is_json or isinstance(parser.parse_line(last), SkipReason):
                raise CutError("its last line has no newline, and may be cut")
            block = last + b"\n"
        yield from _parse(parser, block)


def _parse(parser: LineParser, block: bytes) -> Iterator[RawColumns | BadRows]:
    """Yield the rows of a block; halves of it where Arrow refuses the whole."""
    if not block.strip():
        return
    lines = block.count(b"\n")
    try:
        yield parser.parse_block(block)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        if lines <= LEAF_LINES:
            yield from _parse_lines(parser, block)
            return
        middle = block.find(b"\n", len(block) // 2) + 1
        if not 0 < middle < len(block):
            middle = block.rfind(b"\n", 0, len(block) // 2) + 1
        yield from _parse(parser, block[:middle])
        yield from _parse(parser, block[middle:])


def _parse_lines(parser: LineParser, block: bytes) -> Iterator[RawColumns | BadRows]:
    """Yield the rows of a few lines, in their order."""
    good: list[Sequence[Any]] = []
    for line in block.split(b"\n"):
        if not line.strip():
            continue
        found = parser.parse_line(line)
        if isinstance(found, SkipReason):
            yield from _build_columns(parser, good)
            good = []
            yield BadRows(found, 1)
        else:
            good.append(found)
    yield from _build_columns(parser, good)


def _build_columns(parser: Any, rows: Sequence[Sequence[Any]]) -> Iterator[RawColumns]:  # noqa: ANN401 - either parser
    for run in split_by_type(rows):
        yield {name: list(column) for name, column in zip(parser.columns, zip(*run, strict=True), strict=True)}


class JsonParser:
    """Parser of JSON lines; the types of its columns are those of the first line that has them."""

    def __init__(self, first: bytes, mapping: ColumnMapping) -> None:
        """Look at the first lines.

        Raises:
            MappingError: none of them has one of the columns.
        """
        self.columns = mapping.columns
        self._keys = {name: parse_path(name) for name in self.columns}
        types: dict[str, pa.DataType] = {}
        seen: dict[str, None] = {}
        for line in first.splitlines():
            document = _load(line)
            if document is None:
                continue
            seen.update(dict.fromkeys(_name_keys(document)))
            for name in self.columns:
                value = find_value(document, self._keys[name])
                if value is not None and name not in types:
                    types[name] = _ARROW_TYPES.get(type(value), pa.string())
            if len(types) == len(self.columns):
                break
        missing = next((name for name in self.columns if name not in types and name not in seen), None)
        if seen and missing is not None:
            raise MappingError(describe_missing_column(missing, seen))
        # Deepest first: a column may be inside what another one is read as.
        self._schema = _build_schema({self._keys[name]: types.get(name, pa.string()) for name in self.columns})

    def parse_block(self, block: bytes) -> RawColumns:
        """Parse a block."""
        options = pajson.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        reading = pajson.ReadOptions(block_size=len(block) + 1)
        table = pajson.read_json(pa.BufferReader(block), read_options=reading, parse_options=options)
        return {name: _dig(table, self._keys[name]) for name in self.columns}

    def parse_line(self, line: bytes) -> Sequence[Any] | SkipReason:
        """Parse one line."""
        document = _load(line)
        if document is None:
            return SkipReason.NOT_JSON
        return [_fit(find_value(document, self._keys[name])) for name in self.columns]


def _load(line: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _fit(value: Any) -> Any:  # noqa: ANN401 - what JSON has
    """Return a value that makes a column of Arrow's; one that cannot be an id or a time is false."""
    if isinstance(value, str | float) or value is None:
        return value
    return value if type(value) is int and abs(value) < MAX_INT64 else False


def _name_keys(document: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in document.items():
        yield f"{before}{key}"
        if isinstance(value, dict):
            yield from _name_keys(value, f"{before}{key}.")


def _build_schema(types: dict[tuple[str, ...], pa.DataType]) -> pa.Schema:
    """Build a schema of nested columns."""
    tree: dict[str, Any] = {}
    for keys, kind in types.items():
        at = tree
        for key in keys[:-1]:
            at = at.setdefault(key, {})
            if not isinstance(at, dict):
                raise UnreadableFileError(f"{'.'.join(keys)} lies inside a column that is read itself")
        at[keys[-1]] = kind
    return pa.schema(_build_fields(tree))


def _build_fields(tree: dict[str, Any]) -> list[pa.Field]:
    return [
        pa.field(key, pa.struct(_build_fields(kind)) if isinstance(kind, dict) else kind) for key, kind in tree.items()
    ]


def _dig(table: pa.Table, keys: Sequence[str]) -> pa.ChunkedArray:
    column = table.column(keys[0])
    for key in keys[1:]:
        column = pc.struct_field(column, key)
    return column


class CsvParser:
    """Parser of CSV, whose first line names the columns; every value is a text."""

    def __init__(self, header: bytes, mapping: ColumnMapping) -> None:
        """Tell the delimiter by the header: the one by which all columns are there.

        Raises:
            MappingError: one of them is not.
        """
        self.columns = mapping.columns
        text = header.decode("utf-8", "replace").rstrip("\r\n")
        found = {delimiter: next(csv.reader([text], delimiter=delimiter), []) for delimiter in DELIMITERS}
        self._delimiter = next(
            (one for one, names in found.items() if set(self.columns) <= set(names)),
            max(DELIMITERS, key=lambda one: len(found[one])),
        )
        self._names = found[self._delimiter]
        missing = next((name for name in self.columns if name not in self._names), None)
        if missing is not None:
            raise MappingError(describe_missing_column(missing, self._names))
        if twice := next((name for name in self.columns if self._names.count(name) > 1), None):
            raise MappingError(
                f"there are {self._names.count(twice)} columns {twice!r:.80}: their names tell them apart"
            )
        # Columns that are not read may have one name, or none.
        self._distinct = [name if name in self.columns else f"{place}\x00" for place, name in enumerate(self._names)]
        self._places = [self._names.index(name) for name in self.columns]

    def parse_block(self, block: bytes) -> RawColumns:
        """Parse a block."""
        table = pacsv.read_csv(
            pa.BufferReader(block),
            read_options=pacsv.ReadOptions(column_names=self._distinct, block_size=len(block) + 1),
            parse_options=pacsv.ParseOptions(delimiter=self._delimiter),
            convert_options=pacsv.ConvertOptions(
                include_columns=list(self.columns),
                column_types=dict.fromkeys(self.columns, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        return {name: table.column(name) for name in self.columns}

    def parse_line(self, line: bytes) -> Sequence[Any] | SkipReason:
        """Parse one line."""
        try:
            fields = next(csv.reader([line.decode("utf-8").rstrip("\r\n")], delimiter=self._delimiter), [])
        except (UnicodeDecodeError, csv.Error):
            return SkipReason.UNDECODABLE
        if len(fields) != len(self._names):
            return SkipReason.UNDECODABLE
        return [fields[place] or None for place in self._places]
