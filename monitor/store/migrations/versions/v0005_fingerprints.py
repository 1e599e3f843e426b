"""Fingerprints of hours and days: a reader that has seen one need not read what is behind it again."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0005"
down_revision: Final = "0004"


def upgrade() -> None:
    """Add the column; what was written before gets numbers by chance, as good as any that nothing else has."""
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
    by_chance = {"postgresql": "CAST(random() * 9007199254740992 AS bigint)", "sqlite": "random()"}
    op.execute(f"UPDATE rollups SET fingerprint = {by_chance[op.get_bind().dialect.name]}")  # noqa: S608 - of constants
