"""Tests of the bench of the API: what a client did not get is told, and a small month goes through all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import api, api_watchers, month
from bench.api import ApiTimes, ChangeTimes, build_table, measure
from bench.api_watchers import time_changes
from bench.month import Month
from bench.truth import WrongResultError
from tests.bench.contestants import quiet
from tests.bench.table_cells import drawn


def test_each_change_is_timed_at_each_client() -> None:
    """From its beginning on, whatever event it came with."""
    got = [[(1, 1.5), (2, 1.5)], [(1, 1.25), (2, 2.5)]]
    assert time_changes([1.0, 1.25], got) == [0.5, 0.25, 0.25, 1.25]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1, 3], "client 1 got 2 changes of 3, and from change 2 on [3]"),
        ([1, 2, 2, 3], "client 1 got 4 changes of 3, and from change 3 on [2, 3]"),
        ([2, 1, 3], "client 1 got 3 changes of 3, and from change 1 on [2, 1, 3]"),
        ([1, 2], "client 1 got 2 changes of 3, and from change 3 on []"),
        ([1, 2, 3, 3], "client 1 got 4 changes of 3, and from change 4 on [3]"),
    ],
)
def test_a_change_that_is_missing_or_comes_twice_is_told(numbers: list[int], said: str) -> None:
    """So is one that comes in another order; with the client, and from where on."""
    whole = [(number, 2.0) for number in (1, 2, 3)]
    with pytest.raises(WrongResultError, match=re.escape(said)):
        time_changes([1.0, 1.0, 1.0], [whole, [(number, 2.0) for number in numbers]])


def test_the_tables_have_every_line() -> None:
    """Requests in one, changes in the other."""
    lines: list[ApiTimes | ChangeTimes] = [
        ApiTimes("SQLite", "a window", 4_317_700, 12_000, 3, 200.0, 4.25, 9.5, 21.0, 0.5),
        ChangeTimes("SQLite", 200, 150, 0.5, 1.25, 1.5),
    ]
    cells = [[cell.strip() for cell in line] for line in drawn(build_table(lines))]
    assert ["SQLite", "a window", "4,317,700", "12,000", "3", "200.0", "4.2", "9.5", "21.0", "0.50"] in cells
    assert ["SQLite", "200", "150", "0.50", "1.25", "1.50"] in cells


@pytest.mark.soak  # a bench
def test_a_small_month_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both databases: each question is answered rightly, and each client gets each change."""
    for module, name, value in ((month, "SMALL", 1), (api, "RATE", 20), (api_watchers, "WATCHERS", 5)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(api, "WATCHERS", 5)
    lines = measure(tmp_path, quiet, Month(days=2, nodes=3), seconds=3)
    asked = [(one.store, one.what) for one in lines if isinstance(one, ApiTimes)]
    assert len(set(asked)) == 8
    assert [(one.clients, one.changes) for one in lines if isinstance(one, ChangeTimes)] == [(5, 8), (5, 8)]
