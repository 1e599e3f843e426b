"""Stores that a test leaves open are closed behind it.

An engine's pool keeps its connections until Python collects it, and Python is in no hurry: a thousand tests later a
process would have more open files than it may have, and ``select`` would know none of the newer ones.
"""

from __future__ import annotations

from typing import Final
from weakref import WeakSet

from sqlalchemy import Connection, Engine, Pool, event

_used: Final[WeakSet[Pool]] = WeakSet()


@event.listens_for(Engine, "engine_connect")
def _note(connection: Connection) -> None:
    # The engine may be one of a moment: it has options of its own, and the pool of another.
    _used.add(connection.engine.pool)


def close() -> None:
    """Close the connections that nobody uses; a pool that is used again makes new ones."""
    for pool in list(_used):
        pool.dispose()
    _used.clear()
