"""Tests of ``hopwatch store``: what is told, what is done, and exit codes."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest
from sqlalchemy import insert, update

from hopwatch.cli.main import main
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.store import dialect, schema, tables
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.monitor.store.tables import SCHEMA_VERSION
from tests.support.spool import START_US
from tests.support.workspace import Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]

ADDED: Final = {
    "windows": (
        "partial",
        "deferred",
        "waits_passed_us",
        "waits_next_us",
        "counts",
        "count_digests",
        "sequence",
        "overdue",
    ),
    "books": ("aside", "unplaced", "counted", "lags", "clock_low_us", "clock_high_us"),
    "lost_ids": ("id_kinds", "id_text_ends", "id_texts", "journeys"),
    "node_windows": (
        "slowest",
        "deferred",
        "inversions",
        "displacement_count",
        "displacement_min",
        "displacement_p50",
        "displacement_p95",
        "displacement_p99",
        "displacement_max",
        "displacement_digest",
        "overdue",
        "overdue_ids",
    ),
}
"""The columns that came after the first version, by the tables of the first version."""


def store(workspace: Workspace, *arguments: str) -> int:
    """Run a command on the store of a place."""
    return main(["store", *arguments, "--config", str(workspace.config)])


def span_since_start() -> str:
    """Return a span that reaches back from now to behind the test's first window, as --keep wants it."""
    return f"{(SystemClock().now_us() - START_US) // HOUR_US - 1}h"


# Versions


def test_migrating_says_what_it_did(workspace: Workspace, capsys: Captured) -> None:
    """A store is made where there is none, and left alone where it is new enough; on stderr."""
    assert store(workspace, "migrate") == 0
    assert capsys.readouterr().err == (
        f"the store {workspace.store_url} is at schema version {SCHEMA_VERSION}, newly made\n"
    )
    assert store(workspace, "migrate") == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"the store {workspace.store_url} has schema version {SCHEMA_VERSION} already\n"


def test_an_older_store_is_refused_by_all_and_taken_along_by_one(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3 with the command, which takes what is in it along."""
    workspace.watch(*one_of_ten_lost())
    before = dialect.create_engine(workspace.store_url)
    with before.execution_options(writes=True).begin() as connection:
        for table in (
            "rollups",
            "node_rollups",
            "stale_hours",
            "pruned_set_aside",
            "undeclared",
            "told_spans",
            "markers",
            "pathway_versions",
            "second_counts",
            "path_times",
            "recent_figures",
            "selftest_minutes",
        ):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        for table in tables.metadata.tables:
            if table.startswith(("alert_", "label_", "outlier", "schemas", "subject_")) or table == "objective_minutes":
                connection.exec_driver_sql(f"DROP TABLE {table}")
        for index in ("set_aside_by_arrival", "windows_by_sequence"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        connection.exec_driver_sql("ALTER TABLE set_aside RENAME TO quarantine")
        for table, names in ADDED.items():
            for name in names:
                connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {name}")
        rules = {"orders": [["a", "b"], [[0, 1]], ["both", "both"], 1]}
        connection.execute(insert(tables.meta).values(name="rules", value=json.dumps(rules)))
        connection.execute(update(schema.version_table).values(version_num="0001"))
    before.dispose()
    told = (
        f"hopwatch: the store {workspace.store_url} has schema version 0001, this program needs {SCHEMA_VERSION}: "
        "stop the monitor and run hopwatch store migrate\n"
    )
    assert workspace.run("report") == 3
    assert capsys.readouterr().err == told
    assert store(workspace, "prune", "--keep", "1d") == 3
    assert capsys.readouterr().err == told
    assert store(workspace, "migrate") == 0
    assert "before at 0001" in capsys.readouterr().err
    assert workspace.run("report", "--by", "hour", "--json") == 0
    (hour,) = json.loads(capsys.readouterr().out)["streams"][0]["hours"]
    assert (hour["known"], hour["lost"]) == (10, 1)


def test_migrating_waits_for_no_monitor(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3 while one runs."""
    with dialect.lock_store(workspace.store_url):
        assert store(workspace, "migrate") == 3
    assert capsys.readouterr().err.startswith("hopwatch: another monitor writes to the store ")


# Retention


def test_what_would_go_is_told_and_stays(workspace: Workspace, capsys: Captured) -> None:
    """With --dry-run; the same numbers as without."""
    workspace.watch(*one_of_ten_lost(), b"broken")
    told = []
    for arguments in (["--dry-run"], [], []):
        assert store(workspace, "prune", "--keep", span_since_start(), *arguments) == 0
        said = capsys.readouterr()
        assert said.err == ""
        told.append(re.sub(r" from before \S+:00:00Z\n$", "", said.out))
    assert told == [
        "would be deleted: 1 windows, 1 records set aside, 0 notifications",
        "deleted: 1 windows, 1 records set aside, 0 notifications",
        "deleted: 0 windows, 0 records set aside, 0 notifications",
    ]
    assert workspace.run("report", "--json") == 0
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert stream["windows"] == []


def test_pruning_leaves_hours_and_accounts(workspace: Workspace, capsys: Captured) -> None:
    """In JSON: the moment, how much, and whether it was done; read again, hours and accounts are the same."""
    workspace.watch(*one_of_ten_lost(), b"broken")
    assert workspace.run("report", "--by", "hour", "--json") == 0
    before = capsys.readouterr().out
    found = []
    for arguments in (["--dry-run"], [], []):
        assert store(workspace, "prune", "--keep", span_since_start(), "--json", *arguments) == 0
        found.append(json.loads(capsys.readouterr().out))
    windows = found[0]["windows"]
    assert windows == 1
    assert [(one["windows"], one["set_aside"], one["dry_run"]) for one in found] == [
        (windows, 1, True),
        (windows, 1, False),
        (0, 0, False),
    ]
    assert found[0]["before"].endswith(":00:00Z")
    assert workspace.run("report", "--by", "hour", "--json") == 0
    assert capsys.readouterr().out == before


@pytest.mark.parametrize(
    ("keep", "more"),
    [
        ("30", "; for days write 30d"),
        ("soon", ""),
        ("-1d", ""),
        ("9999d", ""),
        ("\u0663\u0660", ""),
        ("0", ""),
        ("", ""),
    ],
)
def test_a_wrong_span_is_told(keep: str, more: str, workspace: Workspace, capsys: Captured) -> None:
    """Exit 2 with what to write."""
    assert store(workspace, "prune", f"--keep={keep}") == 2
    form = "--keep is a whole number over 0 and its unit, h or d, such as 30d, at most 3650d"
    assert capsys.readouterr().err == f"hopwatch: {form}; got {keep or 'nothing'}{more}\n"


def test_nothing_is_kept_for_no_time(workspace: Workspace, capsys: Captured) -> None:
    """Exit 2: whoever writes 0h has mistyped, and would lose all."""
    assert store(workspace, "prune", "--keep", "0h") == 2
    assert capsys.readouterr().err.endswith("at most 3650d; got 0h\n")


def test_pruning_makes_no_store(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3 where there is none yet."""
    assert store(workspace, "prune", "--keep", "1d") == 3
    assert "there is no store at " in capsys.readouterr().err
    assert not (workspace.folder / "store.db").exists()
