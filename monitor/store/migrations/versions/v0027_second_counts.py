"""Counts by second of event time."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0027"
down_revision: Final = "0026"


def upgrade() -> None:
    """Create their table; nothing was counted by second before."""
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "second_counts",
        sa.Column("stream", kind, primary_key=True, nullable=False),
        sa.Column("window_start_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("node", kind, primary_key=True, nullable=False),
        sa.Column("counts", sa.Text, nullable=False, comment="JSON: the counts by second as they are reported"),
    )
