"""The first tables: windows, their nodes and lost ids, books, and what a micro-batch needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None

_LAG: Final = ("count", "min", "p50", "p95", "p99", "max")


def upgrade() -> None:
    """Make the tables."""
    _make_windows()
    _make_nodes()
    _make_books()
    _make_tools()


def _words(name: str, *, is_key: bool = False) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=is_key, nullable=False)


def _key(name: str, kind: type[sa.types.TypeEngine[Any]] = sa.BigInteger) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)


def _lags(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(f"{name}_{part}", sa.BigInteger) for name in names for part in _LAG)


def _given(name: str, kind: type[sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _make_windows() -> None:
    op.create_table(
        "windows",
        _words("stream", is_key=True),
        _key("window_start_us"),
        sa.Column("status", sa.String(16), nullable=False),
        _given("revision", sa.Integer),
        sa.Column("verdict", sa.String(16)),
        _given("reasons", sa.Text),
        *_counts("known", "delivered", "filtered", "rejected", "lost", "lost_lower"),
        sa.Column("lost_upper", sa.BigInteger),
        sa.Column("loss_ratio", sa.Float(53)),
        *_counts("in_flight", "recovered"),
        *_lags("lag_us"),
        *_counts("last_first_sighting_us"),
        _given("is_settled", sa.Boolean),
        _given("books", sa.LargeBinary),
        _given("is_live", sa.Boolean),
    )
    op.create_table(
        "revisions",
        _words("stream", is_key=True),
        _key("window_start_us"),
        _key("revision", sa.Integer),
        *_counts("watermark_us"),
        _given("changed", sa.Text),
        comment="What each revision of a final window changed: field, before and after",
    )
    op.create_table(
        "tallies",
        _words("stream", is_key=True),
        _key("window_start_us"),
        _key("shard", sa.Integer),
        _given("parcel", sa.LargeBinary),
        comment="What a window is judged from, as long as it can be judged again",
    )


def _make_nodes() -> None:
    op.create_table(
        "node_windows",
        _words("stream", is_key=True),
        _key("window_start_us"),
        _key("place", sa.Integer),
        _words("node"),
        *_counts("expected", "seen", "arrived", "departed", "filtered", "rejected"),
        *_counts("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower"),
        sa.Column("loss_upper", sa.BigInteger),
        sa.Column("loss_ratio", sa.Float(53)),
        *_counts("in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped"),
        sa.Column("coverage", sa.Float(53)),
        *_lags("lag_in_us", "lag_out_us", "inside_us"),
        sa.Column("process_duration_p95_us", sa.BigInteger),
        *(_given(f"{name}_digest", sa.LargeBinary) for name in ("lag_in_us", "lag_out_us", "inside_us")),
    )
    op.create_table(
        "lost_ids",
        _words("stream", is_key=True),
        _key("window_start_us"),
        _words("node", is_key=True),
        _given("message_ids", sa.LargeBinary),
        comment="16 bytes an id, in byte order, as many as max_lost_ids: a row an id would cost more than all the rest",
    )


def _make_books() -> None:
    op.create_table(
        "books",
        *(_words(name, is_key=True) for name in ("stream", "node", "probe")),
        _key("epoch_us"),
        *_counts("first_arrival_us", "last_arrival_us", "complete_through_us", "missing_batches", "skew_us"),
        _given("said_bye", sa.Boolean),
        *_counts("batches", "duplicate_batches", "observations", "duplicate_observations", "too_late", "implausible"),
        *(_given(name, sa.Text) for name in ("runs", "drops", "sent")),
    )


def _make_tools() -> None:
    op.create_table(
        "meta",
        _words("name", is_key=True),
        _given("value", sa.Text),
        comment="One value a name: the query that writes here and its last batch, its rules, the watermark",
    )
    op.create_table(
        "streams",
        _words("stream", is_key=True),
        *_counts("first_start_us", "last_start_us"),
        comment="The first and the last window in which a plausible batch fell",
    )
    op.create_table(
        "segments",
        _words("path", is_key=True),
        *_counts("needed_until_us", "batch_id"),
        comment="Segments that windows still point into; they are deleted once nothing does",
    )
    op.create_table(
        "arrivals",
        _words("place", is_key=True),
        *_counts("last_arrival_us"),
        comment="When the last record of each partition of a topic arrived, as far as it is read",
    )
    op.create_table(
        "holes",
        _words("place", is_key=True),
        _key("first_offset"),
        *_counts("last_offset", "after_us", "before_us"),
        comment="Records that had aged out of a partition before they were read, both ends included",
    )
    op.create_table(
        "quarantine",
        _words("path", is_key=True),
        _key("position"),
        _key("length"),
        *_counts("arrival_us"),
        _words("reason"),
        _words("message"),
    )
