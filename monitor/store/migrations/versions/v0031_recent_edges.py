"""Recent times on the edges of pathways."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0031"
down_revision: Final = "0030"


def upgrade() -> None:
    """Add a column to the recent figures; no time is known until they are renewed."""
    op.add_column(
        "recent_figures",
        sa.Column("edges", sa.Text, comment="JSON: times on the edges, null of what was written before"),
    )
