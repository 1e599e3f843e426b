"""Versions of paths and terms in a table of their own, and lags of nodes that ended the path for a part of a span."""

from __future__ import annotations

import json
from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0024"
down_revision: Final = "0023"


def upgrade() -> None:
    """Create the table, and move the one version of each stream that the store has."""
    text = sa.String().with_variant(sa.String(collation="C"), "postgresql")
    versions = op.create_table(
        "pathway_versions",
        sa.Column("stream", text, primary_key=True, nullable=False),
        sa.Column("valid_from_us", sa.BigInteger, primary_key=True, autoincrement=False, nullable=False),
        sa.Column("registered_us", sa.BigInteger, nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        comment="Versions of the streams' paths and terms, each valid for windows that start at a minute or later",
    )
    meta = sa.table("meta", sa.column("name", sa.String), sa.column("value", sa.String))
    connection = op.get_bind()
    rules = connection.execute(sa.select(meta.c.value).where(meta.c.name == "rules")).scalar()
    rows = []
    for stream, (nodes, arrows, stamps, shards, *counting) in json.loads(rules or "{}").items():
        config = {"pathway": [nodes, arrows, stamps, *counting], "shards": shards}
        rows.append({"stream": stream, "valid_from_us": 0, "registered_us": 0, "config": json.dumps(config)})
    if rows:
        op.bulk_insert(versions, rows)
    comment = "lag_out of the minutes in which the node ended the pathway; empty where that is all of its lag_out"
    op.add_column("node_rollups", sa.Column("ends_digest", sa.LargeBinary, comment=comment))
    connection.execute(sa.delete(meta).where(meta.c.name == "rules"))
