"""The order in which messages come to nodes: inversions, and by how many messages each was overtaken."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0015"
down_revision: Final = "0014"


def upgrade() -> None:
    """Add the columns; in windows that were judged before nothing was compared."""
    for table in ("node_windows", "node_rollups"):
        op.add_column(table, sa.Column("inversions", sa.BigInteger, nullable=False, server_default="0"))
        for part in ("count", "min", "p50", "p95", "p99", "max"):
            op.add_column(table, sa.Column(f"displacement_{part}", sa.BigInteger))
        digest = sa.Column("displacement_digest", sa.LargeBinary, comment="Null where nothing was compared")
        op.add_column(table, digest)
