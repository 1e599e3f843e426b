"""Tests of ``hopwatch pathway discover`` and ``hopwatch pathway adopt``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import update

from hopwatch.cli.main import main
from hopwatch.monitor.store import dialect, schema, tables
from hopwatch.probes.contract.batch import Batch
from tests.support.spool import at_us, observation_batch, pack_lags
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches

Captured = pytest.CaptureFixture[str]
COMMENTED = CONFIGURATION.replace('path = "a -> b"', 'path = ["a -> b"] # the path\n# and its terms')
ALL = range(10)


def passed(node: str, numbers: range, after_ms: int, **fields: Any) -> Batch:  # noqa: ANN401 - as a Batch has them
    """Return a batch in which messages passed a node, so long after they were made."""
    lags = {
        f"lag_{side}_us": pack_lags(*[1_000 * (after_ms + n)] * len(numbers)) for n, side in enumerate(("in", "out"))
    }
    return observation_batch(numbers, node, **(lags | fields))


def watch(workspace: Workspace, *records: Batch, text: str = COMMENTED) -> Workspace:
    """Let messages pass a and b, and records of others come."""
    own = [passed("a", ALL, 1), passed("b", ALL, 30)]
    return workspace.configure(text).watch(*own, *records, *closing_batches(seq=1), arrival_us=at_us(200))


def run(workspace: Workspace, command: str, *flags: str) -> int:
    """Run a command, and return its exit code."""
    return main(["pathway", command, *flags, "--config", str(workspace.config)])


def test_an_undeclared_node_is_found_between_others(workspace: Workspace, capsys: Captured) -> None:
    """With its messages, since when, its neighbours, and the arrows that would be others."""
    watch(workspace, passed("x", ALL, 10))
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out.splitlines() == [
        "orders: x is not declared",
        "  10 messages, since 2026-01-01T00:00:00.010000Z",
        "  before it: a (10)",
        "  behind it: b (10)",
        "  as a part of the path: -a -> b, +a -> x, +x -> b",
        "  hopwatch pathway adopt x --stream orders edits the file",
    ]
    assert run(workspace, "discover", "--json", "--stream", "orders") == 0
    (told,) = json.loads(capsys.readouterr().out)["nodes"]
    assert told == {
        "stream": "orders",
        "node": "x",
        "messages": 10,
        "since": "2026-01-01T00:00:00.010000Z",
        "before": [{"node": "a", "messages": 10}],
        "behind": [{"node": "b", "messages": 10}],
        "stamps": "both",
        "removed": ["a -> b"],
        "added": ["a -> x", "x -> b"],
        "unseen": 0,
        "obstacle": "",
    }


def watch_shortcut(workspace: Workspace, *records: Batch) -> None:
    """Let one of four messages go past the node in the middle."""
    many = range(200)
    own = [passed("a", many, 1), passed("b", range(150), 10), passed("c", many, 30)]
    text = CONFIGURATION.replace("a -> b", "a -> b -> c")
    workspace.configure(text).watch(*own, *records, *closing_batches(1, "abc"), arrival_us=at_us(200))


def test_an_edge_that_nobody_declared_is_found(workspace: Workspace, capsys: Captured) -> None:
    """With the arrow that would declare it; whether the probes missed the messages cannot be told."""
    watch_shortcut(workspace)
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out.splitlines() == [
        "orders: messages go from a to c past b",
        "  50 of 200 that a saw, unless the probes of b missed them",
        "  as a part of the path: -a -> b, +a -> b | c",
    ]
    assert run(workspace, "discover", "--json", "--stream", "orders") == 0
    assert json.loads(capsys.readouterr().out) == {
        "nodes": [],
        "edges": [
            {
                "stream": "orders",
                "source": "a",
                "past": ["b"],
                "target": "c",
                "messages": 50,
                "sent": 200,
                "removed": ["a -> b"],
                "added": ["a -> b | c"],
            }
        ],
    }


def test_what_an_undeclared_node_may_have_seen_is_no_edge(workspace: Workspace, capsys: Captured) -> None:
    """Messages went by it; once it is declared, the others are looked at."""
    watch_shortcut(workspace, passed("x", range(150, 200), 10))
    assert run(workspace, "discover", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert ([one["node"] for one in told["nodes"]], told["edges"]) == (["x"], [])


def test_a_node_becomes_a_part_of_the_path(workspace: Workspace, capsys: Captured) -> None:
    """The file is edited in one step, its comments stay, and the node is declared from then on."""
    watch(workspace, passed("x", ALL, 10))
    workspace.config.chmod(0o640)
    assert run(workspace, "adopt", "x", "--stream", "orders", "--dry-run") == 0
    assert workspace.config.read_text() == COMMENTED
    dry = capsys.readouterr().out
    assert run(workspace, "adopt", "x", "--stream", "orders") == 0
    assert capsys.readouterr().out == dry
    assert '+path = ["a -> x -> b"] # the path' in dry
    assert workspace.config.read_text() == COMMENTED.replace("a -> b", "a -> x -> b")
    assert workspace.config.stat().st_mode & 0o777 == 0o640
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out == "no probe reports a node or an edge that its path does not have\n"


def test_a_node_that_sees_a_part_is_another_way(workspace: Workspace, capsys: Captured) -> None:
    """As in a rolling upgrade; what it stamps is said, too."""
    watch(workspace, passed("x", range(4), 10, lag_out_us=b""))
    assert run(workspace, "adopt", "x", "--stream", "orders", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["is_written"], told["stamps"], told["added"]) == (True, "in", ["a -> b | x", "x -> b"])
    assert '+path = ["a -> b | x", "x -> b"] # the path' in told["diff"]
    assert 'x = "in"' in workspace.config.read_text()


def test_messages_that_would_be_lost_are_warned_of(workspace: Workspace, capsys: Captured) -> None:
    """A node that takes all, and missed one of two hundred."""
    many = range(200)
    own = [passed("a", many, 1), passed("b", many, 30), passed("x", range(199), 10)]
    workspace.configure(COMMENTED).watch(*own, *closing_batches(seq=1), arrival_us=at_us(200))
    warning = "1 of 200 messages that passed there were not seen at x: such messages will count as lost"
    assert run(workspace, "discover") == 0
    assert f"  {warning}\n" in capsys.readouterr().out
    assert run(workspace, "adopt", "x", "--stream", "orders") == 0
    assert capsys.readouterr().err == f"hopwatch: {warning}\n"


@pytest.mark.parametrize(
    ("record", "obstacle"),
    [
        (
            passed("x", range(20, 30), 10),
            "x shares no message with a declared node: its ids are others, or nothing comes on",
        ),
        (
            passed("x", ALL, 10, window_start_ms=at_us(0) // 1_000 + 180_000),
            "no message of x is old enough yet, or it only counts, or its records are gone",
        ),
    ],
)
def test_a_node_without_a_place_is_not_adopted(
    record: Batch, obstacle: str, workspace: Workspace, capsys: Captured
) -> None:
    """The reason is said, and that ignore_nodes leaves it out."""
    watch(workspace, record)
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out.endswith(f"  {obstacle}; ignore_nodes leaves it out\n")
    assert run(workspace, "adopt", "x", "--stream", "orders") == 2
    assert capsys.readouterr().err == f"hopwatch: {obstacle}: edit the path by hand\n"
    assert workspace.config.read_text() == COMMENTED


def test_line_ends_stay_as_they_are(workspace: Workspace) -> None:
    """A file of Windows has its own."""
    watch(workspace, passed("x", ALL, 10))
    workspace.config.write_bytes(COMMENTED.replace("\n", "\r\n").encode())
    assert run(workspace, "adopt", "x", "--stream", "orders") == 0
    assert workspace.config.read_bytes() == COMMENTED.replace("a -> b", "a -> x -> b").replace("\n", "\r\n").encode()


def test_a_name_of_long_ago_is_not_discovered(workspace: Workspace, capsys: Captured) -> None:
    """Nothing came under it in the last hour."""
    watch(workspace, passed("x", ALL, 10))
    engine = dialect.create_engine(workspace.store_url)
    with schema.open_change(engine) as connection:
        connection.execute(update(tables.undeclared).values(last_arrival_us=at_us(-4_000)))
    engine.dispose()
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out == "no probe reports a node or an edge that its path does not have\n"


def test_a_node_that_is_not_there_is_refused(workspace: Workspace, capsys: Captured) -> None:
    """So is one that is declared, and one of a stream that is not."""
    watch(workspace)
    for node in ("x", "b"):
        assert run(workspace, "adopt", node, "--stream", "orders") == 2
        told = f"no probe reports an undeclared node {node!r} of 'orders': see pathway discover"
        assert capsys.readouterr().err == f"hopwatch: {told}\n"
    assert run(workspace, "adopt", "x", "--stream", "pings") == 2
    assert capsys.readouterr().err == "hopwatch: --stream names 'pings', the configuration has: orders\n"


def test_a_node_that_is_ignored_is_not_discovered(workspace: Workspace, capsys: Captured) -> None:
    """Somebody has decided that it is not meant."""
    watch(workspace, passed("x", ALL, 10))
    workspace.configure(COMMENTED.replace("# the path", '\nignore_nodes = ["x"]'))
    assert run(workspace, "discover") == 0
    assert capsys.readouterr().out == "no probe reports a node or an edge that its path does not have\n"


def test_a_file_that_cannot_be_written_stays(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names it, and nothing is left beside it."""
    watch(workspace, passed("x", ALL, 10))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    assert run(workspace, "adopt", "x", "--stream", "orders") == 2
    told = f"the configuration {workspace.config} cannot be written: Permission denied"
    assert capsys.readouterr().err == f"hopwatch: {told}\n"
    assert workspace.config.read_text() == COMMENTED
    assert [path.name for path in workspace.folder.glob(".*.new")] == []


def test_a_path_that_the_environment_sets_is_edited_by_hand(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has no such key."""
    watch(workspace, passed("x", ALL, 10))
    monkeypatch.setenv("HOPWATCH_STREAMS__ORDERS__PATH", "a -> b")
    workspace.configure(COMMENTED.replace('path = ["a -> b"] # the path', ""))
    assert run(workspace, "adopt", "x", "--stream", "orders") == 2
    told = "the configuration has no path of 'orders': it is set elsewhere, edit it there"
    assert capsys.readouterr().err == f"hopwatch: {told}\n"
