"""Markers."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0023"
down_revision: Final = "0022"


def upgrade() -> None:
    """Create their table."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    op.create_table(
        "markers",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("stream", text, nullable=False),
        sa.Column("text", text, nullable=False),
        sa.Column("labels", text, nullable=False),
        sa.Column("by", text, nullable=False),
        comment="Moments that people and programs have marked, such as a deploy; an empty stream is all streams",
    )
