"""Tests of ``hopwatch pathway diff`` and ``hopwatch pathway history``, and of what ``check`` says of a store."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from hopwatch.cli.main import main
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings import load
from hopwatch.monitor.store import dialect, pathway_versions, schema
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.monitor.version_changes import describe_changes
from tests.laws.strategies import DrawnPathway, pathways
from tests.support.spool import START_US
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
EDITED = CONFIGURATION.replace('"a -> b"', '"a -> b -> c"')
MINUTE = "2026-01-01T00:01:00Z"
ORDERS = StreamConfig(Pathway.parse("a -> b"), WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000))


@pytest.fixture
def watched(workspace: Workspace) -> Workspace:
    """Return a folder whose store has a window, and two versions of its stream."""
    workspace.watch(*one_of_ten_lost())
    engine = dialect.create_engine(workspace.store_url)
    workspace.configure(EDITED)
    rules = load(workspace.config, flags={}, environ={}).stream_configs()
    with schema.open_change(engine) as connection:
        planned = pathway_versions.plan_versions(connection, rules, START_US)
        pathway_versions.save_versions(connection, planned, START_US)
    return workspace


def run(watched: Workspace, command: str, *flags: str) -> int:
    """Run a command about versions, and return its exit code."""
    return main(["pathway", command, "--config", str(watched.config), *flags])


def test_a_history_lists_versions_and_what_they_changed(watched: Workspace, capsys: Captured) -> None:
    """From when on each is valid; in JSON with all of it."""
    assert run(watched, "history") == 0
    (stream, first, second) = capsys.readouterr().out.splitlines()
    assert (stream, first) == ("orders", "  from the beginning    the first version")
    assert second == f"  {MINUTE}  node c added; arrow b -> c added"
    assert run(watched, "history", "--stream", "orders", "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["streams"]
    assert [one["valid_from"] for one in told["versions"]] == [None, MINUTE]
    assert told["versions"][1]["registered"] == "2026-01-01T00:00:00Z"
    assert told["versions"][1]["pathway"][0] == ["a", "b", "c"]
    assert told["versions"][1]["changes"] == ["node c added", "arrow b -> c added"]


def test_a_stream_without_versions_is_refused(watched: Workspace, capsys: Captured) -> None:
    """With the name that was given."""
    assert run(watched, "history", "--stream", "refunds") == 2
    assert "--stream names 'refunds', the store has no version of such a stream" in capsys.readouterr().err


def test_a_diff_says_what_would_change_and_from_when(watched: Workspace, capsys: Captured) -> None:
    """Nothing is written, so that it can be asked twice."""
    assert run(watched, "diff") == 0
    assert capsys.readouterr().out == "nothing would change: each stream is configured as its store has it\n"
    watched.configure(EDITED + 'transit = "60s"\n[streams.refunds]\npath = "r"\n')
    for _ in range(2):
        assert run(watched, "diff", "--json") == 0
        changes = {one["stream"]: one for one in json.loads(capsys.readouterr().out)["changes"]}
        assert changes["orders"]["changes"] == ["transit 150s -> 60s"]
        assert changes["orders"]["valid_from"] > MINUTE
        assert changes["refunds"] == {"stream": "refunds", "valid_from": None, "changes": []}
    assert run(watched, "diff") == 0
    orders, refunds = capsys.readouterr().out.splitlines()
    assert orders.startswith("orders: from ")
    assert orders.endswith(" on, if it is taken up now: transit 150s -> 60s")
    assert refunds == "refunds: the store does not know this stream yet"


def test_check_says_behind_the_drawing_what_would_change(watched: Workspace, capsys: Captured) -> None:
    """Nothing where nothing would; a store that cannot be read is told of, and the file is fine."""
    assert main(["pathway", "check", str(watched.config)]) == 0
    assert "on, if it is taken up now" not in capsys.readouterr().out
    watched.configure(CONFIGURATION)
    assert main(["pathway", "check", str(watched.config)]) == 0
    assert "on, if it is taken up now: node c removed; arrow b -> c removed" in capsys.readouterr().out
    (watched.folder / "broken.db").write_bytes(b"no database" * 99)
    watched.configure(CONFIGURATION.replace("store.db", "broken.db"))
    assert main(["pathway", "check", str(watched.config)]) == 0
    assert capsys.readouterr().err.startswith("hopwatch: what would change is not known: ")


@given(pathways(), pathways())
def test_equal_versions_have_no_changes_and_all_others_have_some(one: DrawnPathway, other: DrawnPathway) -> None:
    """A path whose nodes, arrows and stamps are alike is alike, in whatever order it was written."""
    before, now = replace(ORDERS, pathway=one.product), replace(ORDERS, pathway=other.product)
    assert describe_changes(before, before) == []
    if set(one.product.nodes) != set(other.product.nodes):
        assert describe_changes(before, now)


def test_each_term_is_told_as_it_is_written() -> None:
    """Also what ids are kept, which nodes are ignored, and whether order counts."""
    now = replace(
        ORDERS,
        pathway=Pathway.parse("a -> n -> b", {"b": "in", "n": "count"}),
        terms=WindowPolicy(1_500_000, 30_000_000, 120_000_000, 86_400_000_000),
        shards=2,
        ignore_nodes=("audit",),
        order=True,
        max_lost_ids=7,
        deadlines=(("a", 2_000_000), ("b", 500_000)),
    )
    assert describe_changes(ORDERS, now) == [
        "node n added",
        "stamps of b: both -> in",
        "transit 150s -> 1500ms",
        "amend_for 3600s -> 120s",
        "shards 1 -> 2",
        "max_lost_ids 10000 -> 7",
        "deadline of a: none -> 2s",
        "deadline of b: none -> 500ms",
        "order of messages counted",
        "ignore_nodes none -> audit",
    ]
    assert describe_changes(now, ORDERS)[0] == "node n removed"
    assert "order of messages not counted" in describe_changes(now, ORDERS)
