"""How many messages nodes keep for a later try, and what the missing ones of a window wait for."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0013"
down_revision: Final = "0012"

_NEVER: Final = str(2**63 - 1)


def upgrade() -> None:
    """Add the columns; in windows that were judged before nothing is deferred, and nothing waits."""
    for table in ("windows", "node_windows"):
        op.add_column(table, sa.Column("deferred", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("windows", sa.Column("waits_passed_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("windows", sa.Column("waits_next_us", sa.BigInteger, nullable=False, server_default=_NEVER))
