"""The registry: schemas, the versions of subjects, and what these owe each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0006"
down_revision: Final = "0005"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "schemas",
        _key("number", sa.BigInteger),
        sa.Column("fingerprint", sa.LargeBinary, nullable=False, unique=True),
        sa.Column("text", sa.Text, nullable=False),
        comment="Avro schemas that were registered; none ever changes or goes",
    )
    op.create_table(
        "subject_versions",
        _words("subject"),
        _key("version", sa.Integer),
        *_counts("schema_number", "registered_us"),
    )
    op.create_table(
        "subject_levels",
        _words("subject"),
        sa.Column("level", sa.String(24), nullable=False),
        comment="What the versions of a subject owe each other; the empty name stands for all others",
    )


def _words(name: str) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=True, nullable=False)


def _key(name: str, kind: Any) -> sa.Column[Any]:  # noqa: ANN401 - a type
    return sa.Column(name, kind, primary_key=True, autoincrement=False, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)
