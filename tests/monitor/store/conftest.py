"""Fixtures of tests of the store: an empty one, in either database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.store import dialect, schema
from servers.postgres import Postgres
from tests.support.postgres import DATABASES


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    """Yield the engine of an empty store."""
    engine = dialect.create_engine(url)
    schema.prepare_store(engine)
    yield engine
    engine.dispose()
