"""Tests of what is held against the truth from our store: a store that is right passes, any other is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine

from bench.generate import GeneratedWork
from bench.result_check import by_key, check_store, from_columns
from bench.truth import WrongResultError, print_of
from bench.work import rules
from hopwatch.monitor.store import dialect, schema
from tests.support.micro_batches import MicroBatches, run_once


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """Return the engine of an empty store."""
    engine = dialect.create_engine(f"sqlite:///{tmp_path}/store.db")
    schema.prepare_store(engine)
    return engine


def segments(little: GeneratedWork) -> list[Path]:
    """Return the segments in order of arrival."""
    return sorted(little.spool.rglob("*.seg"), key=lambda path: path.stat().st_mtime_ns)


def test_our_store_holds_what_is_there(little: GeneratedWork, engine: Engine) -> None:
    """The monitor's results on the spool equal the truth, all final and without a hole."""
    run_once(engine, rules(little.work), segments(little))
    check_store(engine, little.work, little.truth())


def test_a_store_without_the_last_segments_is_refused(little: GeneratedWork, engine: Engine) -> None:
    """Observations that were not read are missing in the accounts."""
    run_once(engine, rules(little.work), segments(little)[:-20])
    said = r"^hopwatch read [\d,]+ observations, none twice or late, got \{'records': "
    with pytest.raises(WrongResultError, match=said):
        check_store(engine, little.work, little.truth())


def test_windows_that_are_not_final_are_refused(little: GeneratedWork, engine: Engine) -> None:
    """A stream whose watermark has not moved on has read everything and judged nothing."""
    MicroBatches(rules(little.work), engine).run(segments(little))
    said = r"^hopwatch, s0 at \S+: final with complete books is expected, got (OPEN|PROVISIONAL), [\d,]+ in flight"
    with pytest.raises(WrongResultError, match=said):
        check_store(engine, little.work, little.truth())


def test_columns_become_what_was_found() -> None:
    """Lost ids go to their window and node; where none is lost there is an empty set."""
    ids = np.array([[1, 2], [3, 4], [5, 6]])
    lost = by_key([np.array([0, 0, 0]), np.array([2, 1, 2]), np.array([3, 3, 3])], ids)
    lags = {(0, 2, 3): ((1.0, 2.0, 3.0),), (0, 2, 0): ((4.0, 5.0, 6.0),)}
    found = from_columns({(0, 2, 3): 9, (0, 2, 0): 10}, lags, lost)
    assert found[0, 2, 3] == (9, 2, print_of(ids[[2, 0]]), ((1.0, 2.0, 3.0),))
    assert found[0, 2, 0] == (10, 0, print_of(ids[:0]), ((4.0, 5.0, 6.0),))
    assert by_key([np.empty(0)] * 3, ids[:0]) == {}
