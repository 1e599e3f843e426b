"""Outliers: what was found of each series, and what the detector remembers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0004"
down_revision: Final = "0003"


def upgrade() -> None:
    """Make the tables; the windows of the last day enter when the monitor is started."""
    op.create_table(
        "outliers",
        _words("stream", is_key=True),
        _key("window_start_us"),
        _words("node", is_key=True),
        _key("quantity", sa.String(16)),
        *_counts("since_us"),
        sa.Column("is_outlier", sa.Boolean, nullable=False),
        sa.Column("observed", sa.Float(53), nullable=False),
        sa.Column("low", sa.Float(53)),
        sa.Column("high", sa.Float(53)),
        sa.Column("score", sa.Float(53), nullable=False),
        sa.Column("reasons", sa.Text, nullable=False),
        comment="Windows in which an episode of a series begins, or becomes an outlier",
    )
    op.create_index("outliers_by_series", "outliers", ["stream", "is_outlier", "window_start_us"])
    op.create_table(
        "outlier_states",
        _words("stream", is_key=True),
        _key("place", sa.Integer),
        *_counts("before_us"),
        sa.Column("states", sa.LargeBinary, nullable=False),
        comment="What the detector remembers of a node's series before a whole hour; no window before it can change",
    )


def _words(name: str, *, is_key: bool = False) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=is_key, nullable=False)


def _key(name: str, kind: Any = sa.BigInteger) -> sa.Column[Any]:  # noqa: ANN401 - a type, or one with a size
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)
