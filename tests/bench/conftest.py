"""Fixtures of tests of the benches: a small work load, generated once."""

from __future__ import annotations

import pytest

from bench.generate import GeneratedWork, generate_work
from bench.work import Work


@pytest.fixture(scope="session")
def little(tmp_path_factory: pytest.TempPathFactory) -> GeneratedWork:
    """Return 200,000 observations of two streams in two minutes, as a spool and as Parquet."""
    return generate_work(
        Work(200_000, streams=2, minutes=2, batch=512), tmp_path_factory.mktemp("bench"), with_parquet=True
    )
