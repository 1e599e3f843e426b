"""The slowest messages of each node, kept with its figures."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0012"
down_revision: Final = "0011"

_COMMENT: Final = "JSON: the slowest messages as they are reported; null where they were not kept"


def upgrade() -> None:
    """Add the column; of what was written before no slowest message is kept."""
    op.add_column("node_windows", sa.Column("slowest", sa.Text, comment=_COMMENT))
