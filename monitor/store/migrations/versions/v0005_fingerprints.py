"""Fingerprints of hours and days: a reader that has seen one need not read what is behind it again."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    """Add the column; what was written before has 0 until it is written again."""
    op.add_column(
        "rollups",
        sa.Column(
            "fingerprint",
            sa.BigInteger,
            nullable=False,
            server_default="0",
            comment="Equal ones stand for equal figures and digests of all nodes",
        ),
    )
