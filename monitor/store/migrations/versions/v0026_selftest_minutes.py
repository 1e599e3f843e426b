"""Minutes of the self-test."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0026"
down_revision: Final = "0025"


def upgrade() -> None:
    """Create their table."""
    op.create_table(
        "selftest_minutes",
        sa.Column("window_start_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("injected", sa.Text, nullable=False),
        sa.Column("is_exact", sa.Boolean, nullable=False),
        sa.Column("checked_us", sa.BigInteger),
        sa.Column("is_failed", sa.Boolean, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("lost", "found", "false")),
        sa.Column("problems", sa.Text, nullable=False),
        comment="Minutes of the self-test: what was injected, and the outcome once its window was compared with that",
    )
