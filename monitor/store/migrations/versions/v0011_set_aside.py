"""Records set aside under that name alone, and the names that no configuration declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0011"
down_revision: Final = "0010"

_PRUNED: Final = "How many records set aside were pruned, by reason: the accounts go on counting them"
_TOLD: Final = (("alert_incidents", "incident"), ("alert_incidents", "notification"), ("alert_history", "notification"))


def upgrade() -> None:
    """Rename the tables and what alerts on record call them; of what was set aside before no name is known."""
    op.drop_index("quarantine_by_arrival", "quarantine")
    op.rename_table("quarantine", "set_aside")
    op.create_index("set_aside_by_arrival", "set_aside", ["arrival_us"])
    op.rename_table("pruned_quarantine", "pruned_set_aside")
    if op.get_bind().dialect.supports_comments:
        op.create_table_comment("pruned_set_aside", _PRUNED)
    for table, column in _TOLD:
        for before, now in (
            ('"kind": "quarantine"', '"kind": "set_aside"'),
            ('"word": "quarantined"', '"word": "set aside"'),
        ):
            op.execute(sa.text(f"UPDATE {table} SET {column} = replace({column}, '{before}', '{now}')"))  # noqa: S608 - names of our own
    op.create_table(
        "undeclared",
        *(_words(name, is_key=True) for name in ("reason", "stream", "node")),
        _words("probe"),
        sa.Column("epoch_us", sa.BigInteger, nullable=False),
        _words("nearest"),
        *_counts("records", "first_arrival_us", "last_arrival_us"),
        comment="Records that were set aside for a name that is not declared, by name, with the newest probe",
    )


def _words(name: str, *, is_key: bool = False) -> sa.Column[str]:
    kind = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    return sa.Column(name, kind, primary_key=is_key, nullable=False)


def _counts(*names: str) -> Iterator[sa.Column[int]]:
    return (sa.Column(name, sa.BigInteger, nullable=False) for name in names)
