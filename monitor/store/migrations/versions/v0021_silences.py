"""Silences of alerts."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0021"
down_revision: Final = "0020"


def upgrade() -> None:
    """Create their table."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "alert_silences",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("target", text, nullable=False),
        sa.Column("from_us", sa.BigInteger, nullable=False),
        sa.Column("until_us", sa.BigInteger, nullable=False),
        sa.Column("by", text, nullable=False),
        sa.Column("why", text, nullable=False),
        comment="Spans in which notifications of an incident, a stream or all are held back",
    )
