"""Room of a node's minute in the store, as the bench measures and shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import month, store_size
from bench.dashboard import POSTGRES, SQLITE
from bench.store_size import StoreSize, build_table, measure
from tests.bench.table_cells import cells


def test_both_databases_are_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Most minutes have no digests afterwards, and nothing is left behind."""
    monkeypatch.setattr(store_size, "NODES", 1)
    monkeypatch.setattr(month, "SMALL", 0)
    found = measure(tmp_path, lambda _: None)
    assert [one.store for one in found] == [SQLITE, POSTGRES]
    for one in found:
        assert 0 < one.kept < one.node_windows / 10
        assert 0 < one.after_bytes < one.before_bytes
        assert one.drop_us > 0
    assert list(tmp_path.iterdir()) == []


def test_the_table_has_the_ratio() -> None:
    """Of what a minute takes before to what is left of it."""
    shown = cells(build_table([StoreSize(SQLITE, 1_000, 10, 2_000.0, 250.0, 4.25)]))
    assert shown[SQLITE] == ["1,000", "2,000", "250", "8.0", "4.2"]
