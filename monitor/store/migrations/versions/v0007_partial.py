"""How many of the lost left a terminal all the same: one number beside what is lost, in windows, hours and days."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0007"
down_revision: Final = "0006"


def upgrade() -> None:
    """Add the column; windows that were judged before had none, as such a message counted as delivered."""
    for table in ("windows", "rollups"):
        op.add_column(table, sa.Column("partial", sa.BigInteger, nullable=False, server_default="0"))
