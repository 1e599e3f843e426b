"""Tests of real Delta and Iceberg tables, which are written, compacted and overwritten between the looks of a tap."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.snapshots import Operation
from pyiceberg.utils.config import Config

from hopwatch.probes.contract.batch import BatchKind
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.sources import open_table
from hopwatch.probes.tables.state import TableState
from hopwatch.probes.tables.tap import TableTap
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.errors import TapUsageError
from hopwatch.probes.taps.sides import StampSide
from hopwatch.testing import MemorySink
from tests.probes.tables.spark_catalog import SparkCatalog
from tests.support.tap_bench import Place

COMPACTION = "CALL shop.system.rewrite_data_files(table => 'sales.orders', options => map('rewrite-all', 'true'))"
EXPIRY = (
    "CALL shop.system.expire_snapshots(table => 'sales.orders', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
)
OVERWRITE = "INSERT OVERWRITE shop.sales.orders SELECT order_id + 2, created, 'y' FROM shop.sales.orders"
DELETE = "DELETE FROM shop.sales.orders WHERE order_id = 4"
MERGE = (
    "MERGE INTO shop.sales.orders AS t USING (SELECT order_id + 2 AS order_id, created, 'z' AS note"
    " FROM shop.sales.orders WHERE order_id > 5) AS n ON t.order_id = n.order_id"
    " WHEN MATCHED THEN UPDATE SET note = n.note WHEN NOT MATCHED THEN INSERT *"
)
INSERT = "INSERT INTO shop.sales.orders SELECT order_id + 7, created, note FROM shop.sales.orders WHERE order_id = 3"
START = datetime(2026, 11, 25, 10, tzinfo=UTC)
Commits = Callable[[str, pa.Table], None]


def rows(*numbers: int) -> pa.Table:
    """Return orders, one a second."""
    created = pa.array([START + timedelta(seconds=number) for number in numbers], pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "order_id": pa.array(numbers, pa.int64()),
            "created": created,
            "note": pa.array(["x"] * len(numbers), pa.string()),
        }
    )


class Looks:
    """A tap of a real table with its state in a file; each look is a tap of its own, after the last one was killed."""

    def __init__(self, address: str, folder: Path) -> None:
        """Set the table."""
        self.address, self.folder = address, folder
        self.sink = MemorySink()
        self.heard: list[str] = []
        self.opened: set[str] = set()
        """Instances of the last look that have not said bye."""

    def look(self) -> list[int]:
        """Look once, and return the ids that have arrived since."""
        before = len(self.sink.records)
        place = Place()
        table = open_table(self.address, place.clock)
        mapping = RowMapping("order_id", "created")
        mapping.check(list(table.find_columns()), self.address)
        state = TableState(self.folder / "state", table.identity, self.address)
        tap = TableTap(
            table, mapping, StampSide.IN, place.probe, BlockingSink(self.sink, place.around), place.around, state
        )
        tap.start(from_start=True)
        tap.step()
        self.heard += place.heard
        found = [decode(record) for record in self.sink.records[before:]]
        self.opened = {batch.probe for batch in found} - {batch.probe for batch in found if batch.kind is BatchKind.BYE}
        return sorted(
            int.from_bytes(batch.message_ids[at : at + 16], "big")
            for batch in found
            for at in range(0, len(batch.message_ids), 16)
        )


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    """Return the path of a Delta table with a snapshot."""
    path = tmp_path / "orders"
    write_deltalake(str(path), rows(1, 2))
    return path


def test_a_delta_table_is_counted_once(delta: Path, tmp_path: Path) -> None:
    """Appends have arrived; of compactions, overwrites, merges and deletes only what was not there before."""
    looks = Looks(f"delta:{delta}", tmp_path)
    write_deltalake(str(delta), rows(3), mode="append")
    assert looks.look() == [1, 2, 3]
    assert looks.look() == []
    DeltaTable(str(delta)).optimize.compact()
    write_deltalake(str(delta), rows(4, 5), mode="append")
    assert looks.look() == [4, 5]
    write_deltalake(str(delta), rows(1, 2, 3, 4, 6), mode="overwrite")
    DeltaTable(str(delta)).delete("order_id = 2")
    assert looks.look() == [6]
    new = rows(3, 7)
    merge = DeltaTable(str(delta)).merge(new, "t.order_id = s.order_id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert looks.look() == [7]
    assert looks.heard == []
    assert not looks.opened


def test_a_delta_table_that_forgets_is_a_gap(delta: Path, tmp_path: Path) -> None:
    """A log that was cleaned up, and a file that was vacuumed, are told in one line each."""
    looks = Looks(f"delta:{delta}", tmp_path)
    assert looks.look() == [1, 2]
    for number in (3, 4):
        write_deltalake(str(delta), rows(number), mode="append")
    DeltaTable(str(delta)).create_checkpoint()
    (delta / "_delta_log" / f"{1:020d}.json").unlink()
    assert looks.look() == [4]
    write_deltalake(str(delta), rows(5), mode="append")
    newest = max(delta.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    assert looks.look() == []
    address = looks.address
    assert looks.heard == [
        f"snapshots of {address} between 0 and 2 are kept no more: what they brought is unknown",
        f"snapshot 3 of {address}: its file {newest.name} is gone: what it held is unknown",
    ]


def test_another_delta_table_in_its_place_ends_the_tap(delta: Path) -> None:
    """Its versions count from 0 again, so that nothing would ever be new, and all of it look lost."""
    table = open_table(f"delta:{delta}", Place().clock)
    through = table.find_new(None).snapshots[-1].place
    assert not table.find_new(through).snapshots
    shutil.rmtree(delta)
    write_deltalake(str(delta), rows(3))
    with pytest.raises(TapUsageError, match="is another table than the one that was read here: begin anew"):
        table.find_new(through)


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    """Return a catalogue on SQLite with a local warehouse, as pyiceberg is configured for it."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    for name, value in {
        "TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse",
    }.items():  # fmt: skip
        monkeypatch.setenv(f"PYICEBERG_CATALOG__SHOP__{name}", value)
    # It reads the environment once, when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    found = load_catalog("shop")
    assert isinstance(found, SqlCatalog)
    found.create_namespace("sales")
    yield found
    found.close()


def test_an_iceberg_table_is_counted_once(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Appends have arrived; of overwrites and deletes only what was not there before; columns may be renamed."""
    table = catalog.create_table("sales.orders", rows().schema)
    looks = Looks("iceberg:shop/sales.orders", tmp_path)
    assert looks.look() == []
    table.append(rows(1, 2))
    table.append(rows(3))
    assert looks.look() == [1, 2, 3]
    table.overwrite(rows(1, 2, 3, 4))
    table.delete("order_id = 2")
    assert looks.look() == [4]
    # What pyiceberg has of a compaction: the same rows, in other files.
    table.overwrite(table.scan().to_arrow())
    assert looks.look() == []
    with table.update_schema() as update:
        update.rename_column("note", "remark")
        update.rename_column("order_id", "number")
    with table.update_schema() as update:
        update.rename_column("number", "order_id")
    table.append(rows(5).rename_columns(["order_id", "created", "remark"]))
    assert looks.look() == [5]
    assert looks.heard == []
    assert not looks.opened


@pytest.mark.soak  # the test above rewrites the same rows, and that of Delta compacts, by default
def test_an_iceberg_table_that_spark_compacts_is_counted_once(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Compactions bring nothing, overwrites and merges what is new; what was read, and then expired, is not missed."""
    table = catalog.create_table("sales.orders", rows().schema)
    looks = Looks("iceberg:shop/sales.orders", tmp_path)
    with SparkCatalog(tmp_path, "shop") as spark:
        for number in (1, 2, 3):
            table.append(rows(number))
        assert looks.look() == [1, 2, 3]
        spark.run(COMPACTION)
        assert looks.look() == []
        # Rows that nobody has read are compacted: they are counted by the snapshot that brought them.
        table.refresh().append(rows(4))
        spark.run(COMPACTION)
        table.refresh().append(rows(5))
        assert looks.look() == [4, 5]
        spark.run(OVERWRITE)
        assert looks.look() == [6, 7]
        spark.run(DELETE)
        spark.run(MERGE)
        assert looks.look() == [8, 9]
        spark.run(COMPACTION)
        spark.run(EXPIRY)
        assert looks.look() == []
        operations = [found.summary.operation for found in table.refresh().metadata.snapshots if found.summary]
        assert operations == [Operation.REPLACE]
        spark.run(INSERT)
        assert looks.look() == [10]
        assert looks.heard == []
        # Of an append that was compacted and expired before a look nobody knows what it brought.
        table.refresh().append(rows(11))
        spark.run(COMPACTION)
        spark.run(EXPIRY)
        assert looks.look() == []
        (told,) = looks.heard
        assert told.endswith("are kept no more: what they brought is unknown")
    assert not looks.opened


def test_an_iceberg_table_that_forgets_is_a_gap(catalog: SqlCatalog, tmp_path: Path) -> None:
    """Snapshots that were expired are told in one line; one whose successor is there is not missed."""
    table = catalog.create_table("sales.orders", rows().schema)
    looks = Looks("iceberg:shop/sales.orders", tmp_path)
    table.append(rows(1))
    assert looks.look() == [1]
    first = table.metadata.current_snapshot_id
    table.append(rows(2))
    assert first is not None
    table.maintenance.expire_snapshots().by_id(first).commit()
    assert looks.look() == [2]
    assert looks.heard == []
    second = table.metadata.current_snapshot_id
    table.append(rows(3))
    third = table.metadata.current_snapshot_id
    table.append(rows(4))
    assert second is not None
    assert third is not None
    table.maintenance.expire_snapshots().by_ids([second, third]).commit()
    assert looks.look() == [4]
    fourth = table.metadata.current_snapshot_id
    told = f"snapshots of iceberg:shop/sales.orders between 2-{second} and 4-{fourth} are kept no more"
    assert looks.heard == [f"{told}: what they brought is unknown"]
    table.append(rows(5))
    (data,) = [path for path in (tmp_path / "warehouse").rglob("*.parquet") if path.stat().st_mtime_ns == max(
        one.stat().st_mtime_ns for one in (tmp_path / "warehouse").rglob("*.parquet"))]  # fmt: skip
    data.write_bytes(b"PAR1 and no more")
    assert looks.look() == []
    assert "is no Parquet file" in looks.heard[-1]
    shutil.rmtree(tmp_path / "warehouse")
