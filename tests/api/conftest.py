"""Stores that a run has, in both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.store import dialect, fencing, schema
from servers.postgres import Postgres
from tests.support.postgres import DATABASES
from tests.support.results_topic import RUN
from tests.support.spool import STREAM_CONFIGS


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Yield the engine of a store that the run RUN has."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/store.db"
    else:
        server: Postgres = request.getfixturevalue("postgres")
        url = server.database()
    made = dialect.create_engine(url)
    schema.prepare_store(made)
    fencing.claim_store(made, tmp_path / "nothing", STREAM_CONFIGS, "", RUN)
    yield made
    made.dispose()
