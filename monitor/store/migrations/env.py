"""Alembic's way in: it migrates over the connection that it is given, in that one's transaction."""

from __future__ import annotations

from alembic import context

from hopwatch.monitor.store import tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
    # SQLite changes a table by making it anew.
    render_as_batch=True,
)
context.run_migrations()
