"""Counts by label, and the first and last window of each value of a label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0017"
down_revision: Final = "0016"


def upgrade() -> None:
    """Make the tables; nothing was counted by label before."""
    op.create_table(
        "label_counts",
        *_keys("stream"),
        sa.Column("window_start_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        *_keys("node"),
        sa.Column("counts", sa.Text, nullable=False, comment="JSON: the counts by label as they are reported"),
    )
    op.create_table(
        "label_values",
        *_keys("stream", "node", "label", "value"),
        sa.Column("first_start_us", sa.BigInteger, nullable=False),
        sa.Column("last_start_us", sa.BigInteger, nullable=False),
        comment="The first and the last window in which a node said a value of a label; "
        "a bounded number of values a label",
    )


def _keys(*names: str) -> Iterator[sa.Column[str]]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return (sa.Column(name, kind, primary_key=True, nullable=False) for name in names)
