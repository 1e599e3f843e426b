"""Times of messages on the path."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0029"
down_revision: Final = "0028"


def upgrade() -> None:
    """Create their table; nothing was timed on the path before."""
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    numbers = ("count", "min", "p50", "p95", "p99", "max", "samples", "messages", "path_messages", "total_us")
    op.create_table(
        "path_times",
        sa.Column("stream", kind, primary_key=True, nullable=False),
        sa.Column("window_start_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("node", kind, primary_key=True, nullable=False),
        sa.Column("source", kind, primary_key=True, nullable=False, comment="the node before, the node, or empty"),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in numbers),
        comment="Times of messages on the path, in windows that are final",
    )
