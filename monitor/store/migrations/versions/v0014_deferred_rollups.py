"""How many messages nodes keep for a later try, in hours and days."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0014"
down_revision: Final = "0013"

_HOUR_US: Final = 3_600_000_000


def upgrade() -> None:
    """Add the columns; hours with windows of which messages wait are rolled up anew."""
    for table in ("rollups", "node_rollups"):
        op.add_column(table, sa.Column("deferred", sa.BigInteger, nullable=False, server_default="0"))
    windows = sa.table("windows", sa.column("stream"), sa.column("window_start_us"), sa.column("deferred"))
    stale = sa.table("stale_hours", sa.column("stream"), sa.column("start_us"))
    start_us = (windows.c.window_start_us - windows.c.window_start_us % _HOUR_US).label("start_us")
    is_known = sa.exists().where(stale.c.stream == windows.c.stream, stale.c.start_us == start_us)
    wanted = sa.select(windows.c.stream, start_us).distinct().where(windows.c.deferred > 0, ~is_known)
    op.execute(sa.insert(stale).from_select(["stream", "start_us"], wanted))
