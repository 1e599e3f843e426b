"""What tests of the store share: an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from monitor.store import dialect, writer


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a store that is not there yet."""
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def engine(url: str) -> Engine:
    """Return the engine of an empty store."""
    engine = dialect.engine(url)
    writer.prepare(engine)
    return engine
