"""Transactions of PostgreSQL that are writing to a table, by the locks that they hold until they end."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, Connection, DateTime, Table, text

DIALECT: Final = "postgresql"
_WRITERS: Final = text("""
WITH held AS MATERIALIZED (
  SELECT * FROM pg_locks WHERE granted AND pid IS DISTINCT FROM pg_backend_pid()
), writers AS (
  SELECT virtualtransaction FROM held, pg_class AS asked
  WHERE asked.oid = CAST(:name AS regclass) AND (
    locktype = 'transactionid' AND :is_moment
    OR locktype = 'relation'
    AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (relation = asked.oid OR asked.relkind <> 'r' OR asked.relhassubclass)
  )
)
SELECT DISTINCT unnest(ARRAY[virtualtransaction, transactionid::text])
FROM held WHERE virtualtransaction IN (SELECT virtualtransaction FROM writers)
""")


def find_writers(connection: Connection, table: Table, grows: Column[Any]) -> frozenset[str]:
    """Return names of the open transactions that may have written rows; none of another database, which tells none.

    Who writes to a table locks it until its transaction ends, before a default of a column is given out. Rows of a view
    or of partitions may be written to other tables: there all count that write in this database. A moment may be that
    at which a transaction began, before it locked anything: there all count that have written. A transaction has two
    names, of which it keeps one when it is prepared.

    Raises:
        SQLAlchemyError: the database cannot be asked.
    """
    if connection.dialect.name != DIALECT:
        return frozenset()
    name = connection.dialect.identifier_preparer.format_table(table)
    asked = {"name": name, "is_moment": isinstance(grows.type, DateTime)}
    return frozenset(filter(None, connection.execute(_WRITERS, asked).scalars()))
