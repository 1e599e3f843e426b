"""Offsets of the clocks of probe instances."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0032"
down_revision: Final = "0031"


def upgrade() -> None:
    """Add both bounds to the books; nothing is known until a clock is measured."""
    for name in ("clock_low_us", "clock_high_us"):
        op.add_column("books", sa.Column(name, sa.BigInteger))
