"""Make the work: a spool for the monitor, the same observations as Parquet for the peers, and what is to be found.

All of it is made before any clock runs, once for each work and scratch folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.spool import Writer
from bench.truth import ExpectedResults
from bench.work import Block, Work, WorkError, blocks
from hopwatch.monitor.errors import DependencyError

SPOOL_BYTES: Final = 38
"""A segment's bytes an observation: 36 of arrays, and what goes round them in small batches."""
PARQUET_BYTES: Final = 26
RUN_BYTES: Final = 60
"""What Spark's shuffles and DuckDB's temporary files take at most while a contestant runs, an observation."""
SPARE_BYTES: Final = 1_000_000_000

_ROW_GROUP: Final = 250_000
_REPEATED: Final = ["stream", "window", "node"]
_SCHEMA: Final = pa.schema(
    [
        ("stream", pa.int16()),
        ("window", pa.int16()),
        ("node", pa.int8()),
        ("id_0", pa.int64()),
        ("id_1", pa.int64()),
        ("lag_in_us", pa.int64()),
        ("lag_out_us", pa.int64()),
    ]
)


class DiskError(DependencyError):
    """The scratch folder's disk is too small; the message says what is there and what is needed."""


@dataclass(frozen=True, slots=True)
class GeneratedWork:
    """Work that has been made, and where."""

    work: Work
    folder: Path

    @property
    def spool(self) -> Path:
        """The folder of segments."""
        return self.folder / "spool"

    @property
    def manifest(self) -> Path:
        """The observations of each segment in order of arrival; written last, so that it says that all is there."""
        return self.folder / "segments.json"

    def segments(self) -> list[int]:
        """Return the observations of each segment, in order of arrival."""
        return [int(count) for count in json.loads(self.manifest.read_text("utf-8"))]

    def truth(self) -> ExpectedResults:
        """Return what is to be found."""
        return ExpectedResults.load(self.folder / "truth.npz")

    def parquet(self, window: int) -> Path:
        """Return the file with one window's observations, a row each."""
        return self.folder / "parquet" / f"{window:05d}.parquet"


def bytes_needed(work: Work, *, with_parquet: bool) -> int:
    """Return how much disk it takes to make the work and to measure it."""
    kept = SPOOL_BYTES + (PARQUET_BYTES if with_parquet else 0)
    return work.observations * (kept + RUN_BYTES) + SPARE_BYTES


def require_disk(scratch: Path, needed: int) -> None:
    """Refuse a disk that is too small.

    Raises:
        DiskError: less is free than is needed.
    """
    free = shutil.disk_usage(scratch).free
    if free < needed:
        short = f"{scratch} has {free / 1e9:,.1f} GB free, the bench needs {needed / 1e9:,.1f} GB"
        raise DiskError(f"{short}: name a larger disk with --scratch, or measure fewer --observations")


def generate_work(work: Work, scratch: Path, *, with_parquet: bool = False) -> GeneratedWork:
    """Return the work below a scratch folder, made now unless it is there already.

    Raises:
        WorkError: the folder's name is one that Spark reads as a pattern, or does not look into.
    """
    folder = scratch.resolve() / work.name
    if any(part.startswith(("_", ".")) or set(part) & set("*?[]{}\\:") for part in folder.parts):
        raise WorkError(f"{folder} has a folder whose name Spark does not take: name another with --scratch")
    of_kind = GeneratedWork(work, folder)
    if of_kind.manifest.exists() and (of_kind.parquet(0).exists() or not with_parquet):
        return of_kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    segments = _write(of_kind, with_parquet=with_parquet)
    of_kind.manifest.write_text(json.dumps(segments), "utf-8")
    return of_kind


def _write(made: GeneratedWork, *, with_parquet: bool) -> list[int]:
    writer = Writer(made.work, made.spool)

    def written() -> Iterator[Block]:
        for window, of_window in groupby(blocks(made.work), lambda block: block.window):
            observed = list(of_window)
            for block in observed:
                writer.write(block)
            if with_parquet:
                _write_parquet(made.parquet(window), observed)
            yield from observed

    ExpectedResults.from_blocks(written()).save(made.folder / "truth.npz")
    return writer.close()


def _write_parquet(path: Path, observed: list[Block]) -> None:
    path.parent.mkdir(exist_ok=True)
    with pq.ParquetWriter(path, _SCHEMA, use_dictionary=_REPEATED, compression="snappy") as file:
        for block in observed:
            file.write_table(_table(block), row_group_size=_ROW_GROUP)


def _table(block: Block) -> pa.Table:
    ids = block.message_ids.view(np.int64)
    columns = (
        *(np.full(len(ids), number) for number in (block.stream, block.window, block.node)),
        *(np.ascontiguousarray(ids[:, half]) for half in (0, 1)),
        block.lag_in_us,
        block.lag_out_us,
    )
    return pa.table(
        [pa.array(column, kind.type) for column, kind in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
    )
