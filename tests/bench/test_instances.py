"""Tests of the bench of probe instances: what is called told, and what its table shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import instances
from bench.instances import IntakeRun, build_table, find_overdue_latencies
from bench.table_style import NONE
from tests.bench.table_cells import cells

RUN = IntakeRun(4_000, 0, 144_000, 138_471, 12.2, 11.6, 11.9, (10.9, 11.4))


def test_losses_are_told_so_long_after_deadline_and_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by its own lane; what is due in the last seconds is left out, and what was never told is None."""
    monkeypatch.setattr(instances, "MINUTES", 1)
    # Of twelve flushes of 5 s those of the first two are due 15 s before the end or earlier, of lanes 0 and 1.
    latencies_s = find_overdue_latencies([1_046.0, 1_047.0], 1_000.0, 5)
    assert latencies_s == (1_046.0 - 1_035.0, 1_047.0 - 1_041.0)
    assert find_overdue_latencies([1_046.0], 1_000.0, 5) == (11.0, None)


def test_the_table_has_no_time_where_something_was_not_told() -> None:
    """One that is never told takes longer than any that is."""
    assert cells(build_table([RUN]))["4,000"][-1] == "11"
    assert cells(build_table([replace(RUN, overdue_s=(10.9, None))]))["4,000"][-1] == NONE
    assert replace(RUN, overdue_s=()).worst_overdue_s is None
