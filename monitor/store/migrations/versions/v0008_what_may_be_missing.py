"""What the books know to be missing by count: implausible observations, and those of nodes that are not declared."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0008"
down_revision: Final = "0007"


def upgrade() -> None:
    """Add the columns; of what was written before nothing is known to be missing."""
    for name in ("aside", "unplaced"):
        op.add_column("books", sa.Column(name, sa.Text, nullable=False, server_default="[]"))
