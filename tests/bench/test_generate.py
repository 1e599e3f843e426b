"""Tests of making the work: spool, Parquet and truth say the same; what cannot be made is told before."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench import generate
from bench.generate import DiskError, GeneratedWork, bytes_needed, generate_work, require_disk
from bench.work import Work, WorkError, blocks
from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.segment import read_frames


def test_the_spool_holds_what_the_truth_says(little: GeneratedWork) -> None:
    """Every observation is in a segment once, in batches of the size asked for, and every probe says bye."""
    records = []
    for path in little.spool.rglob("*.seg"):
        data = path.read_bytes()
        records += [decode(data[frame.start : frame.end]) for frame in read_frames(data)]
    assert sum(batch.count for batch in records) == little.truth().observations == sum(little.segments())
    assert max(batch.count for batch in records) == little.work.batch
    assert sum(batch.kind == BatchKind.BYE for batch in records) == 2 * 4


def test_parquet_holds_the_same_rows(little: GeneratedWork) -> None:
    """A file a window, a row an observation, ids and lags as they were made."""
    table = pq.read_table(little.parquet(1))
    of_window = list(blocks(little.work, range(1, 2)))
    for name, column in (("id_0", 0), ("id_1", 1)):
        expected = np.concatenate([block.message_ids[:, column] for block in of_window])
        assert np.array_equal(table.column(name).to_numpy().view(np.uint64), expected)
    assert np.array_equal(table.column("lag_out_us").to_numpy(), np.concatenate([b.lag_out_us for b in of_window]))


def test_work_is_made_once(tmp_path: Path) -> None:
    """Existing work is reused, and made anew if Parquet is asked for and was not made."""
    work = Work(4_000)
    first = generate_work(work, tmp_path)
    stamp = first.manifest.stat().st_mtime_ns
    assert generate_work(work, tmp_path).manifest.stat().st_mtime_ns == stamp
    assert not first.parquet(0).exists()
    assert generate_work(work, tmp_path, with_parquet=True).parquet(0).exists()


@pytest.mark.parametrize("name", ["_hidden", ".hidden", "many*"])
def test_a_folder_that_spark_does_not_take_is_refused(tmp_path: Path, name: str) -> None:
    """A name that Spark reads as a pattern or as hidden is refused with what to do."""
    with pytest.raises(WorkError, match=r"has a folder whose name Spark does not take: name another with --scratch$"):
        generate_work(Work(4_000), tmp_path / name)


def test_a_disk_that_is_too_small_is_refused(tmp_path: Path) -> None:
    """The error says how much disk is free, how much is needed, and what to do."""
    said = (
        r"GB free, the bench needs 1,000,000\.0 GB: name a larger disk with --scratch, or measure fewer --observations$"
    )
    with pytest.raises(DiskError, match=rf"^{re.escape(str(tmp_path))} has [\d,.]+ {said}"):
        require_disk(tmp_path, 10**15)
    require_disk(tmp_path, 1)


def test_parquet_needs_disk_too() -> None:
    """The bytes needed grow with the observations, and with Parquet."""
    few, many = Work(4_000), Work(4_000_000)
    assert bytes_needed(many, with_parquet=False) > bytes_needed(few, with_parquet=False)
    extra = bytes_needed(many, with_parquet=True) - bytes_needed(many, with_parquet=False)
    assert extra == many.observations * generate.PARQUET_BYTES
