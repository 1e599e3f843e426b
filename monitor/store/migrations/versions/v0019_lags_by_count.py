"""Lags of nodes without ids: histograms in the books, digests of windows, hours and days."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0019"
down_revision: Final = "0018"


def upgrade() -> None:
    """Add the columns; no packet had a histogram that was read before."""
    op.add_column("books", sa.Column("lags", sa.Text, nullable=False, server_default="[]"))
    for table in ("windows", "rollups"):
        comment = "JSON: two digests of lags in base64 for each node of counts; empty where no lag was told"
        op.add_column(table, sa.Column("count_digests", sa.Text, nullable=False, server_default="[]", comment=comment))
