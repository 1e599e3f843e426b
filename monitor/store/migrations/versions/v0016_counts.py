"""Counts of nodes without ids: what instances counted, and what windows say of it."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0016"
down_revision: Final = "0015"


def upgrade() -> None:
    """Add the columns; nothing was counted before."""
    op.add_column("books", sa.Column("counted", sa.Text, nullable=False, server_default="[]"))
    op.add_column("windows", sa.Column("counts", sa.Text, nullable=False, server_default="[]"))
