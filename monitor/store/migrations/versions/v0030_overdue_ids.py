"""Ids of what is overdue at the nodes of windows that are not final."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0030"
down_revision: Final = "0029"


def upgrade() -> None:
    """Add a column to the nodes of windows; no id is known of what was judged before."""
    op.add_column(
        "node_windows",
        sa.Column("overdue_ids", sa.Text, comment="JSON: the first ids of what is overdue, null of nothing"),
    )
