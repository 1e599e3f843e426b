"""What lost ids were called: of which kind each is, and the texts of those that are texts."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0009"
down_revision: Final = "0008"


def upgrade() -> None:
    """Add the columns; of what was written before nothing is known but the bytes."""
    told = {
        "id_kinds": "uint8 an id: 0 bytes, 1 UUID, 2 integer, 3 text, 4 not known, 5 a text that was left out",
        "id_text_ends": "uint32 an id: where its text ends",
        "id_texts": "UTF-8, the texts laid end to end",
    }
    for name, comment in told.items():
        op.add_column("lost_ids", sa.Column(name, sa.LargeBinary, comment=comment))
