"""Counts of nodes without ids, in hours and days."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0018"
down_revision: Final = "0017"

_HOUR_US: Final = 3_600_000_000


def upgrade() -> None:
    """Add the column; hours with windows in which nodes counted are rolled up anew."""
    op.add_column("rollups", sa.Column("counts", sa.Text, nullable=False, server_default="[]"))
    windows = sa.table("windows", sa.column("stream"), sa.column("window_start_us"), sa.column("counts"))
    stale = sa.table("stale_hours", sa.column("stream"), sa.column("start_us"))
    start_us = (windows.c.window_start_us - windows.c.window_start_us % _HOUR_US).label("start_us")
    is_known = sa.exists().where(stale.c.stream == windows.c.stream, stale.c.start_us == start_us)
    wanted = sa.select(windows.c.stream, start_us).distinct().where(windows.c.counts != "[]", ~is_known)
    op.execute(sa.insert(stale).from_select(["stream", "start_us"], wanted))
