"""Rows of Parquet: only the columns that are mapped are read, in batches of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hopwatch.probes.files.errors import CutError, MappingError, UnreadableFileError, describe_missing_column
from hopwatch.probes.files.file_columns import ColumnMapping
from hopwatch.probes.files.rows import RawColumns
from hopwatch.probes.files.source import describe_error

ROWS: Final = 131_072
"""Rows that are read at once."""


class ParquetRows:
    """Rows of a Parquet file; ``read_ratio`` is the part of them that was read."""

    def __init__(self, file: Any, mapping: ColumnMapping) -> None:  # noqa: ANN401 - pyarrow has no types
        """Read the footer.

        Raises:
            MappingError: a column is not there.
            UnreadableFileError: it has no footer, as one that is cut.
        """
        try:
            self._parquet = pq.ParquetFile(file, pre_buffer=False)
            schema = self._parquet.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise UnreadableFileError(f"it is no whole Parquet file ({describe_error(error)})") from None
        self._paths = {name: find_column(schema, name) for name in mapping.columns}
        self.read_ratio = 0.0

    def iter_tables(self) -> Iterator[RawColumns]:
        """Yield the rows.

        Raises:
            CutError: a part of the file is broken; the rows before it came.
        """
        leaves = sorted({".".join(path) for path in self._paths.values()})
        rows = 0
        try:
            for table in slice_rows(self._parquet.iter_batches(ROWS, columns=leaves, use_threads=True)):
                rows += table.num_rows
                self.read_ratio = rows / max(1, self._parquet.metadata.num_rows)
                yield {name: dig_column(table, path) for name, path in self._paths.items()}
        except (OSError, pa.ArrowException) as error:
            raise CutError(f"a part of it is broken ({describe_error(error)})") from None


def slice_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of ROWS rows, the last of fewer: how batches come is the library's matter."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, ROWS)
            waiting = table.slice(ROWS).to_batches()
            rows -= ROWS
    if rows:
        yield pa.Table.from_batches(waiting)


def find_column(schema: pa.Schema, name: str) -> tuple[str, ...]:
    """Return the path of a column: its name as it is, or with dots between the names of nested ones.

    Raises:
        MappingError: it is not there.
    """
    if schema.get_field_index(name) >= 0:
        return (name,)
    path: tuple[str, ...] = tuple(name.split("."))
    fields: Any = schema
    for depth, key in enumerate(path):
        place = fields.get_field_index(key) if depth == 0 or pa.types.is_struct(fields) else -1
        if place < 0:
            raise MappingError(describe_missing_column(name, _name_columns(schema)))
        fields = fields.field(place).type
    return path


def _name_columns(fields: Any, before: str = "") -> Iterator[str]:  # noqa: ANN401 - a schema, or a struct
    for field in fields:
        yield f"{before}{field.name}"
        if pa.types.is_struct(field.type):
            yield from _name_columns(field.type, f"{before}{field.name}.")


def dig_column(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """Return a column, or one inside of it."""
    column = table.column(path[0])
    for key in path[1:]:
        column = pc.struct_field(column, key)
    return column
