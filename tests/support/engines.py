"""Engines of the tests' stores: what a test leaves open is closed, and a statement is compiled once for all of them.

An engine's pool keeps its connections until Python collects it, and Python is in no hurry: a thousand tests later a
process would have more open files than it may have, and ``select`` would know none of the newer ones. An engine also
compiles each statement for itself, as a program has one engine; thousands of tests have one each.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakSet

from sqlalchemy import Connection, Engine, Pool, event

_used: Final[WeakSet[Pool]] = WeakSet()


class _CompiledStatements(dict[Any, Any]):
    """Compiled statements by name of the database, where an engine's own cache has them by its dialect object."""

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401 - as a dictionary's
        return super().get((key[0].name, *key[1:]), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:  # noqa: ANN401 - as a dictionary's
        super().__setitem__((key[0].name, *key[1:]), compiled)


_compiled: Final = _CompiledStatements()


@event.listens_for(Engine, "engine_connect")
def _note(connection: Connection) -> None:
    # The engine may be one of a moment: it has options of its own, and the pool of another.
    _used.add(connection.engine.pool)
    connection.engine._compiled_cache = _compiled


def close() -> None:
    """Close the connections that nobody uses; a pool that is used again makes new ones."""
    for pool in list(_used):
        pool.dispose()
    _used.clear()
