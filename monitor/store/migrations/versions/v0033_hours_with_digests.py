"""Index of the hours whose minutes have digests."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0033"
down_revision: Final = "0032"

_ROLLUPS: Final = (
    "Hours and days; frozen is what is not built again: its windows were pruned, or have lost their digests"
)


def upgrade() -> None:
    """Add the index; hours that were pruned are not in it."""
    has_digests = sa.text("span = 'hour' AND NOT is_frozen")
    op.create_index(
        "hours_with_digests", "rollups", ["start_us"], sqlite_where=has_digests, postgresql_where=has_digests
    )
    if op.get_bind().dialect.supports_comments:
        op.create_table_comment("rollups", _ROLLUPS)
