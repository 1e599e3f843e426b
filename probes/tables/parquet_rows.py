"""Rows of a Parquet file, of some of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hopwatch.probes.tables.snapshots import MissingFileError

ROWS: Final = 65_536
"""Rows that are read at once; batches are cut by it, so it is a part of what makes them the same."""
FIELD_ID: Final = b"PARQUET:field_id"


def read_parquet(open_file: Callable[[], Any], file: str, columns: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a file under their names in the table; ``columns`` has those by their names in the file.

    Raises:
        MissingFileError: the file is gone, or is no Parquet file.
    """
    try:
        with open_file() as opened:
            parquet = pq.ParquetFile(opened)
            there = set(parquet.schema_arrow.names)
            chosen = [name for name in columns if name in there]
            for batch in parquet.iter_batches(ROWS, columns=chosen):
                yield batch.rename_columns([columns[name] for name in batch.schema.names])
    except FileNotFoundError:
        raise MissingFileError(f"its file {file} is gone") from None
    except pa.ArrowInvalid as error:
        raise MissingFileError(f"its file {file} is no Parquet file: {error!s:.120}") from None
