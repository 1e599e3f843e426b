"""Messages that are overdue, in windows that are not final and at their nodes."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0025"
down_revision: Final = "0024"


def upgrade() -> None:
    """Add a column to windows and one to their nodes; nothing is overdue in what was judged before."""
    for table in ("windows", "node_windows"):
        op.add_column(table, sa.Column("overdue", sa.BigInteger, nullable=False, server_default="0"))
