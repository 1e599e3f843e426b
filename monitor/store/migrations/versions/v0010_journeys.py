"""The stamps of lost messages, kept as long as their ids."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0010"
down_revision: Final = "0009"


def upgrade() -> None:
    """Add the column; of what was written before no stamp is kept."""
    op.add_column("lost_ids", sa.Column("journeys", sa.LargeBinary, comment="the stamps of each message, compressed"))
