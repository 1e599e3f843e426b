"""The tables. A lag is six columns (count, min, p50, p95, p99, max) under its name; moments are µs since 1970."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, LargeBinary, MetaData, String, Table, Text

from monitor.kernel.books import Tallies
from monitor.results import Quantiles

SCHEMA_VERSION: Final = 1

QUANTILES: Final = tuple(field.name for field in fields(Quantiles))
TALLIES: Final = tuple(field.name for field in fields(Tallies))
NODE_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")

metadata: Final = MetaData()


def _lag(name: str) -> Iterator[Column[int]]:
    return (Column(f"{name}_{part}", BigInteger) for part in QUANTILES)


def _counts(*names: str) -> Iterator[Column[int]]:
    return (Column(name, BigInteger, nullable=False) for name in names)


def _window_key() -> Iterator[Column[object]]:
    yield Column("stream", String(128), primary_key=True)
    yield Column("window_start_us", BigInteger, primary_key=True, autoincrement=False)


meta: Final = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
    comment="One value a name: the schema's version, the query that writes here and its last batch, the watermark",
)

streams: Final = Table(
    "streams",
    metadata,
    Column("stream", String(128), primary_key=True),
    *_counts("first_start_us", "last_start_us"),
    comment="The first and the last window in which a plausible batch fell",
)

windows: Final = Table(
    "windows",
    metadata,
    *_window_key(),
    Column("status", String(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("verdict", String(16)),
    Column("reasons", Text, nullable=False),
    *_counts("known", "delivered", "filtered", "rejected", "lost", "lost_lower"),
    Column("lost_upper", BigInteger),
    Column("loss_ratio", Float(53)),
    *_counts("in_flight", "recovered"),
    *_lag("lag_us"),
    Column("last_first_sighting_us", BigInteger, nullable=False),
    Column("is_settled", Boolean, nullable=False),
    Column("books", LargeBinary, nullable=False),
    Column("is_live", Boolean, nullable=False),
)

node_windows: Final = Table(
    "node_windows",
    metadata,
    *_window_key(),
    Column("place", Integer, primary_key=True, autoincrement=False),
    Column("node", String(128), nullable=False),
    *_counts("expected", "seen", "arrived", "departed", "filtered", "rejected"),
    *_counts("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower"),
    Column("loss_upper", BigInteger),
    Column("loss_ratio", Float(53)),
    *_counts("in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped"),
    Column("coverage", Float(53)),
    *(column for name in NODE_LAGS for column in _lag(name)),
    Column("process_duration_p95_us", BigInteger),
    *(Column(f"{name}_digest", LargeBinary, nullable=False) for name in NODE_LAGS),
)

lost_ids: Final = Table(
    "lost_ids",
    metadata,
    *_window_key(),
    Column("node", String(128), primary_key=True),
    Column("message_ids", LargeBinary, nullable=False),
    comment="16 bytes an id, in byte order, at most 10,000 ids: a row an id would cost more than all the rest",
)

tallies: Final = Table(
    "tallies",
    metadata,
    *_window_key(),
    Column("shard", Integer, primary_key=True, autoincrement=False),
    Column("parcel", LargeBinary, nullable=False),
    comment="What a window is judged from, as long as it can be judged again",
)

segments: Final = Table(
    "segments",
    metadata,
    Column("path", String(1024), primary_key=True),
    *_counts("needed_until_us", "batch_id"),
    comment="Segments that windows still point into; they are deleted once nothing does",
)

books: Final = Table(
    "books",
    metadata,
    Column("stream", String(128), primary_key=True),
    Column("node", String(128), primary_key=True),
    Column("probe", String(128), primary_key=True),
    Column("epoch_us", BigInteger, primary_key=True, autoincrement=False),
    *_counts("first_arrival_us", "last_arrival_us", "complete_through_us", "missing_batches", "skew_us"),
    Column("said_bye", Boolean, nullable=False),
    *_counts(*TALLIES),
    Column("runs", Text, nullable=False),
    Column("drops", Text, nullable=False),
    Column("sent", Text, nullable=False),
)

arrivals: Final = Table(
    "arrivals",
    metadata,
    Column("place", String(512), primary_key=True),
    *_counts("last_arrival_us"),
    comment="When the last record of each partition of a topic arrived, as far as it is read",
)

holes: Final = Table(
    "holes",
    metadata,
    Column("place", String(512), primary_key=True),
    Column("first_offset", BigInteger, primary_key=True, autoincrement=False),
    *_counts("last_offset", "after_us", "before_us"),
    comment="Records that had aged out of a partition before they were read, both ends included",
)

quarantine: Final = Table(
    "quarantine",
    metadata,
    Column("path", String(1024), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    # An empty record may stand where the torn tail begins.
    Column("length", BigInteger, primary_key=True, autoincrement=False),
    *_counts("arrival_us"),
    Column("reason", String(32), nullable=False),
    Column("message", Text, nullable=False),
)

revisions: Final = Table(
    "revisions",
    metadata,
    *_window_key(),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("watermark_us", BigInteger, nullable=False),
    Column("changed", Text, nullable=False),
    comment="What each revision of a final window changed: field, before and after",
)
