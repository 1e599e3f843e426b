"""Fixtures of PostgreSQL: one server a run, and databases that are emptied behind each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from servers.postgres import Postgres

DATABASES: Final = ("sqlite", "postgres")
"""Databases that a store can be in, as parameters of a fixture."""


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Yield the server that all tests share, started when the first one asks for it."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres(postgres_server: Postgres) -> Iterator[Postgres]:
    """Yield the server; the databases that a test asks for are empty again behind it."""
    yield postgres_server
    postgres_server.empty_all()
