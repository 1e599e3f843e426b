"""A database with a table of orders, and a tap of it that is killed at times."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Engine,
    Float,
    Integer,
    MetaData,
    Numeric,
    String,
    Table,
    create_engine,
    insert,
)

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.tables.message_rows import RowMapping
from hopwatch.probes.tables.sources import GrowingRows, open_table
from hopwatch.probes.tables.state import TableState
from hopwatch.probes.tables.tap import TableTap
from hopwatch.probes.taps.blocking_sink import BlockingSink
from hopwatch.probes.taps.sides import StampSide
from hopwatch.testing import EPOCH_US, ManualClock
from tests.probes.tables.kept_table import MortalSink
from tests.support.tap_bench import Place

ORDERS = Table(
    "orders", MetaData(), Column("n", Integer, primary_key=True), Column("id", Integer), Column("at", BigInteger),
    Column("price", Numeric), Column("made", DateTime), Column("share", Float), Column("text", String),
)  # fmt: skip
ORDERS_BY_NUMBER = GrowingRows("orders", "n", 30)


class Database:
    """A database with a table, and a tap of it that outlives its kills by its state."""

    def __init__(self, folder: Path, url: str | None = None, rows: GrowingRows = ORDERS_BY_NUMBER) -> None:
        """Make the table, of SQLite unless a URL says another, and start a tap of some rows."""
        self.url, self.rows = url or f"sqlite:///{folder}/orders.db", rows
        self.engine: Engine = create_engine(self.url)
        ORDERS.metadata.create_all(self.engine)
        self.clock, self.sink, self.folder = ManualClock(), MortalSink(), folder
        self.start()

    def start(self) -> None:
        """Start a tap where the state says."""
        self.place = Place()
        self.place.clock.advance((self.clock.us - EPOCH_US) / 1e6)
        self.clock = self.place.clock
        table = open_table(f"sql:{self.url}", self.clock, self.rows)
        state = TableState(self.folder / "state", table.identity, table.name)
        self.tap = TableTap(
            table, RowMapping("id", "at"), StampSide.IN, self.place.probe,
            BlockingSink(self.sink, self.place.around), self.place.around, state,
        )  # fmt: skip
        self.tap.start(from_start=True)

    def write(self, *numbers: int) -> None:
        """Write rows."""
        with self.engine.begin() as connection:
            for number in numbers:
                connection.execute(insert(ORDERS).values(n=number, id=number, at=EPOCH_US + number))

    def look(self, after_s: float = 0) -> list[int]:
        """Look after some time, and return the ids that have arrived."""
        self.clock.advance(after_s)
        before = len(self.sink.records)
        self.tap.step()
        return [
            int.from_bytes(batch.message_ids[at : at + 16], "big")
            for batch in self.batches()[before:]
            for at in range(0, len(batch.message_ids), 16)
        ]

    def batches(self) -> list[Batch]:
        """Return what was sent."""
        return [decode(record) for record in self.sink.records]

    @property
    def caught_up_us(self) -> int | None:
        """Return up to when the tap says that it has read."""
        assert self.place.probe._sender is not None
        return self.place.probe._sender._caught_up_us
