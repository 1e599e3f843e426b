"""Windows have the number of the write that wrote them last."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0020"
down_revision: Final = "0019"


def upgrade() -> None:
    """Add the column and its index; windows that are there have number 0."""
    comment = "Number of the write that wrote it last; a later write has a greater one"
    column = sa.Column("sequence", sa.BigInteger, nullable=False, server_default="0", comment=comment)
    op.add_column("windows", column)
    op.create_index("windows_by_sequence", "windows", ["sequence", "stream", "window_start_us"])
