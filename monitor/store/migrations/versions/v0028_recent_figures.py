"""Recent figures of streams."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0028"
down_revision: Final = "0027"


def upgrade() -> None:
    """Create their table; the first micro-batch fills it."""
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    text = "JSON: what each node stamped in the span, its lags and its backlog"
    op.create_table(
        "recent_figures",
        sa.Column("stream", kind, primary_key=True, nullable=False),
        sa.Column("through_us", sa.BigInteger, nullable=False),
        sa.Column("nodes", sa.Text, nullable=False, comment=text),
    )
