"""Fixtures of tests of alerts: an empty store, in either database, or in a file for many queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from hopwatch.monitor.store import dialect, schema
from tests.monitor.store.conftest import engine, url

__all__ = ["engine", "prepared", "store", "url"]


@contextmanager
def prepared(store_url: str) -> Iterator[Engine]:
    """Yield the engine of an empty store."""
    made = dialect.create_engine(store_url)
    schema.prepare_store(made)
    yield made
    made.dispose()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Engine]:
    """Yield the engine of an empty store in a file."""
    with prepared(f"sqlite:///{tmp_path}/store.db") as made:
        yield made
