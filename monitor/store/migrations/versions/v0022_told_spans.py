"""Spans of contracts that webhooks were told of."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0022"
down_revision: Final = "0021"


def upgrade() -> None:
    """Create their table."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "told_spans",
        sa.Column("contract", text, primary_key=True, nullable=False),
        sa.Column("until_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("revisions", sa.BigInteger, nullable=False),
        sa.Column("known", sa.BigInteger, nullable=False),
        sa.Column("lost_lower", sa.BigInteger, nullable=False),
        sa.Column("lost_upper", sa.BigInteger),
        sa.Column("in_flight", sa.BigInteger, nullable=False),
        sa.Column("told_us", sa.BigInteger, nullable=False),
        comment="What the webhook of a contract was told last of each span; pending where it was told nothing yet",
    )
