"""Tests of ``hopwatch redrive`` without a broker: its flags, and what is refused before a topic is read."""

from __future__ import annotations

import json

import pytest

from hopwatch.cli import redrive
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
AT_B = ("--stream", "orders", "--node", "b")
WINDOW = ("--window", "2026-01-01T00:00:00Z")
TOPICS = 'topics = { a = "kafka://127.0.0.1:1/orders" }\n'


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--stream", "x", "--node", "b", *WINDOW, "--dry-run"), "--stream names 'x', the configuration has: orders"),
        (("--stream", "orders", "--node", "x", *WINDOW), "--node names 'x', the nodes of orders with ids are: a, b"),
        (AT_B, "name the messages: --window, --from and --to, or --ids-from, one of these"),
        ((*AT_B, *WINDOW, "--from", "2026-01-01"), "name the messages: --window, --from and --to, or --ids-from, one"),
        ((*AT_B, *WINDOW), "to send messages takes --rate and --state; --dry-run finds them, and sends nothing"),
        ((*AT_B, *WINDOW, "--rate", "5"), "to send messages takes --rate and --state"),
        (
            (*AT_B, "--window", "2026-01-01T00:00:30Z", "--dry-run"),
            "--window is a whole UTC minute, as windows start, got 2026-01-01T00:00:30Z",
        ),
        ((*AT_B, "--window", "noon", "--dry-run"), "--window is a time such as 2026-11-21T06:40:00Z, got 'noon'"),
        ((*AT_B, *WINDOW, "--dry-run", "--to-topic", "orders"), "--to-topic: messages are in a topic, "),
        (
            (*AT_B, *WINDOW, "--dry-run", "--to-topic", "kafka://h:9092/observations"),
            "--to-topic is kafka://h:9092/observations, where probes report to: name a topic of messages",
        ),
        ((*AT_B, *WINDOW, "--dry-run", "--id-json", "a..b"), "a path is 1 to 16 keys with dots between"),
        ((*AT_B, *WINDOW, "--rate", "0", "--state", "x"), "Invalid value for '--rate'"),
    ],
)
def test_flags_that_contradict_each_other_are_told(
    flags: tuple[str, ...], told: str, workspace: Workspace, capsys: Captured
) -> None:
    """Before a store or a topic is read."""
    workspace.configure(CONFIGURATION.replace("spool:./spool", "kafka://h:9092/observations"))
    assert workspace.run("redrive", *flags) == 2
    assert told in capsys.readouterr().err


def test_without_the_topic_of_a_node_nothing_is_sent(workspace: Workspace, capsys: Captured) -> None:
    """The error says what to write into the configuration."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("redrive", *AT_B, *WINDOW, "--dry-run") == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "hopwatch: messages that are lost at b are in the topic that a writes, and the configuration does not name it: "
        'say in [streams.orders]: topics = { a = "kafka://HOST:PORT/TOPIC" }\n'
    )


def test_what_may_be_lost_is_refused_for_people_too(workspace: Workspace, capsys: Captured) -> None:
    """The topic, which is not there, is not asked for."""
    workspace.configure(CONFIGURATION + TOPICS).watch(*one_of_ten_lost()[:2])
    state = workspace.folder / "state"
    assert workspace.run("redrive", *AT_B, *WINDOW, "--rate", "5", "--state", str(state)) == 1
    assert capsys.readouterr().out.splitlines() == [
        "window 2026-01-01T00:00:00Z: 1 messages are not sent: UNKNOWN: of 1 that are missing here 0 are surely lost",
        "0 messages are surely lost at b of orders: 0 found, 0 sent, 0 recovered",
    ]
    runs = [json.loads(line)["run"] for line in state.read_text().splitlines()[1:]]
    assert [(run["lost"], "ended" in run) for run in runs] == [(0, False), (0, True)]


def test_a_window_that_is_not_kept_is_a_finding(workspace: Workspace, capsys: Captured) -> None:
    """Nothing is known of it; where nothing is lost all is well."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("redrive", *AT_B, "--window", "2026-01-02", "--dry-run") == 1
    assert "the store does not have this window" in capsys.readouterr().out
    assert workspace.run("redrive", "--stream", "orders", "--node", "a", *WINDOW, "--dry-run") == 0
    assert "0 messages are surely lost at a of orders: 0 found, nothing is sent by --dry-run" in capsys.readouterr().out


def test_brokers_that_do_not_answer_are_told(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With exit code 3, as of any dependency; the state has the run."""
    monkeypatch.setattr("hopwatch.probes.taps.topic.ANSWER_S", 0.5)
    workspace.configure(CONFIGURATION + TOPICS).watch(*one_of_ten_lost())
    assert workspace.run("redrive", *AT_B, *WINDOW, "--dry-run") == 3
    assert "the topic orders at 127.0.0.1:1 cannot be reached" in capsys.readouterr().err


def test_too_many_messages_are_refused(workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """More would not fit into memory."""
    monkeypatch.setattr(redrive, "MAX_MESSAGES", 0)
    workspace.configure(CONFIGURATION + TOPICS).watch(*one_of_ten_lost())
    assert workspace.run("redrive", *AT_B, *WINDOW, "--dry-run") == 2
    told = "more than 0 messages are lost there, and so many are sent again at once: let --from and --to be nearer"
    assert told in capsys.readouterr().err


def test_topics_are_of_nodes_of_the_path(workspace: Workspace, capsys: Captured) -> None:
    """And each is a topic."""
    workspace.configure(CONFIGURATION + 'topics = { x = "kafka://h:1/orders" }\n')
    assert workspace.run("redrive", *AT_B, *WINDOW, "--dry-run") == 2
    assert "topics are of nodes of the path, got 'x': name one of a, b" in capsys.readouterr().err
    workspace.configure(CONFIGURATION + 'topics = { a = "orders" }\n')
    assert workspace.run("redrive", *AT_B, *WINDOW, "--dry-run") == 2
    assert "messages are in a topic, " in capsys.readouterr().err
