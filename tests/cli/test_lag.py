"""Tests of ``hopwatch lag``; tests/real/test_consumer_lag.py has a real consumer group."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from hopwatch.cli import lag
from hopwatch.display.texts import NONE
from hopwatch.monitor.kernel.group_lag import GroupLag, measure_lag
from hopwatch.monitor.settings import Settings
from tests.support.recent import recent_figures, save_recent
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
TOPIC = 'topics = { a = "kafka://127.0.0.1:1/orders" }\n'
GROUPS = TOPIC + 'groups = { b = "billing" }\n'
HOW = 'groups = { NODE = "GROUP" } beside topics = { NODE_BEFORE = "kafka://HOST:PORT/TOPIC" }'


def read_lags(settings: Settings, stream: str) -> Iterator[GroupLag]:
    """Yield the lag of one group, in place of a broker."""
    assert settings.streams[stream].groups == {"b": "billing"}
    yield GroupLag("b", "a", "orders", "billing", (measure_lag(0, 1_200, 0, 3_456), measure_lag(1, -1001, 0, 7)))


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command read a lag that is known."""
    monkeypatch.setattr(lag, "read_group_lags", read_lags)


@pytest.mark.usefixtures("brokers")
def test_the_lag_of_a_group_is_shown_by_partition(workspace: Workspace, capsys: Captured) -> None:
    """Without a store there is no backlog beside it."""
    assert workspace.configure(CONFIGURATION + GROUPS).run("lag") == 0
    first, *table = capsys.readouterr().out.splitlines()
    assert first == "orders: b is 2,263 behind in orders, as the group billing"
    assert [line.replace("│", " ").split() for line in table if line.startswith("│")] == [
        ["0", "1,200", "3,456", "2,256", "0"],
        ["1", NONE, "7", "7", "0"],
    ]


@pytest.mark.usefixtures("brokers")
def test_the_backlog_of_the_node_stands_beside_it(workspace: Workspace, capsys: Captured) -> None:
    """In messages and in time, as stamps tell it, as long as it is of now."""
    workspace.configure(CONFIGURATION + GROUPS).watch(*one_of_ten_lost())
    now_us = time.time_ns() // 1_000
    for through_us, backlog in ((now_us, 600), (now_us - 3_600_000_000, None)):
        save_recent(workspace.store_url, recent_figures(through_us=through_us))
        assert workspace.run("lag", "--stream", "orders") == 0
        assert ("; by stamps 600 messages, 3.0 s\n" in capsys.readouterr().out) == (backlog is not None)
        assert workspace.run("lag", "--json") == 0
        (stream,) = json.loads(capsys.readouterr().out)["streams"]
        (group,) = stream["groups"]
        assert (stream["stream"], group["lag"], group["backlog"]) == ("orders", 2_263, backlog)
        assert group["backlog_s"] == (backlog and pytest.approx(3, abs=0.1))


def test_brokers_that_do_not_answer_are_told(workspace: Workspace, capsys: Captured) -> None:
    """By their address, with the group and the topic."""
    assert workspace.configure(CONFIGURATION + GROUPS).run("lag") == 3
    told = "hopwatch: the lag of the group billing in kafka://127.0.0.1:1/orders cannot be read: "
    assert capsys.readouterr().err.startswith(told)


def test_a_client_that_cannot_be_made_is_told(workspace: Workspace, capsys: Captured) -> None:
    """As where a file of its certificates is gone."""
    ssl = '[transport.kafka]\nsecurity_protocol = "SSL"\nssl_ca_file = "./gone.pem"\n'
    assert workspace.configure(CONFIGURATION + GROUPS + ssl).run("lag") == 3
    told = capsys.readouterr().err
    assert told.startswith("hopwatch: the lag of the group billing in kafka://127.0.0.1:1/orders cannot be read: ")
    assert "ssl.ca.location failed" in told


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        ("", (), f"no stream has a consumer group: name it in [streams.NAME] by {HOW}"),
        (
            TOPIC,
            ("--stream", "orders"),
            f"the stream 'orders' has no consumer group: name it in [streams.orders] by {HOW}",
        ),
        (GROUPS, ("--stream", "x"), "--stream names 'x', the configuration has: orders"),
        ('groups = { b = "g" }', (), "'b' has a group, and no node before it has a topic: name what the group reads"),
        (TOPIC + 'groups = { a = "g" }', (), "'a' has a group, and no node before it has a topic"),
        (TOPIC + 'groups = { x = "g" }', (), "groups are of nodes of the path, got 'x': name one of a, b"),
        (TOPIC + 'groups = { b = " " }', (), "a consumer group is 1 to 255 printable characters, got ' '"),
        (TOPIC + 'groups = { b = "a\\nb" }', (), r"a consumer group is 1 to 255 printable characters, got 'a\nb'"),
    ],
)
def test_what_is_wrong_is_told(
    text: str, flags: tuple[str, ...], told: str, workspace: Workspace, capsys: Captured
) -> None:
    """With what to do."""
    assert workspace.configure(CONFIGURATION + text).run("lag", *flags) == 2
    assert told in capsys.readouterr().err
