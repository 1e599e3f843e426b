"""Tests of ``hopwatch alerts``: what is shown, what is noted, and exit codes."""

from __future__ import annotations

import getpass
import json

import pytest
from sqlalchemy import delete, update

from hopwatch.alerts import rule_config
from hopwatch.alerts.batch_hook import AlertHook
from hopwatch.alerts.channels import routing
from hopwatch.alerts.channels.channel import Accepted, Failure, Outcome
from hopwatch.alerts.channels.routing import Routing
from hopwatch.alerts.channels.webhook import build_idempotency_key
from hopwatch.alerts.storage import outbox
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.cli.main import main
from hopwatch.monitor import settings
from hopwatch.monitor.store import dialect, schema, tables
from tests.support.alert_batches import BEFORE_AMENDED
from tests.support.batch_traffic import traffic
from tests.support.channel import Receiver, Spell
from tests.support.clock import ManualClock
from tests.support.micro_batches import MicroBatches
from tests.support.windows import at
from tests.support.workspace import CONFIGURATION, Workspace

Captured = pytest.CaptureFixture[str]
RULES = """
[[alerts.rules]]
kind = "loss"
labels = { team = "payments" }
[[alerts.rules]]
kind = "lag"
for = "9m"
threshold = "1ms"
"""
PAGE = "loss/page/orders"


@pytest.fixture
def watched(workspace: Workspace) -> Workspace:
    """Return a place where a monitor has seen a loss, and told the pager and the chat."""
    workspace.configure(CONFIGURATION + RULES)
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    chosen = settings.load(workspace.config, flags={}, environ={})
    follower = AlertHook(
        rule_config.build_rules(chosen), lambda one: ("chat", "pager") if one.severity == "page" else ()
    )
    stream = MicroBatches(chosen.stream_configs(), engine, follower=follower)
    for paths in traffic(workspace.folder / "spool")[:BEFORE_AMENDED]:
        stream.run(paths)
    engine.dispose()
    return workspace


def alerts(workspace: Workspace, *arguments: str) -> int:
    """Run a command on the alerts of a place."""
    return main(["alerts", *arguments, "--config", str(workspace.config)])


def test_what_is_wrong_now_is_shown(watched: Workspace, capsys: Captured) -> None:
    """Each incident with its key, since when, how many places; and what is bad for too short a time yet."""
    assert alerts(watched, "list") == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    head = lines.index(f"{PAGE}  since 2026-01-01T00:00:00Z, places: 1")
    assert lines[head + 1].startswith("    lost: ")
    assert "pending: lag (ticket) orders a, since 2026-01-01T00:00:00Z\n" in out


def test_what_is_wrong_now_is_told_to_programs(watched: Workspace, capsys: Captured) -> None:
    """With all that a notification says, in the words of the report."""
    assert alerts(watched, "list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    page = next(one for one in told["incidents"] if one["key"] == PAGE)
    assert (page["event"], page["since"], page["acknowledged"], page["total"]) == (
        "firing",
        "2026-01-01T00:00:00Z",
        None,
        1,
    )
    assert page["labels"] == {"rule": "loss", "severity": "page", "stream": "orders", "team": "payments"}
    (alert,) = page["alerts"]
    assert (alert["node"], alert["edge"], alert["word"], alert["window_start"]) == (
        "b",
        "a -> b",
        "lost",
        "2026-01-01T00:01:00Z",
    )
    assert {"rule": "lag", "severity": "ticket", "stream": "orders", "node": "b"}.items() <= told["pending"][1].items()


def test_an_incident_is_taken_on_by_the_first(watched: Workspace, capsys: Captured) -> None:
    """Everybody sees by whom; whoever comes second is told who was first and when, with exit code 1."""
    assert alerts(watched, "ack", PAGE, "--by", "ann", "--note", "looking") == 0
    assert capsys.readouterr().out == f"{PAGE} is acknowledged by ann\n"
    assert alerts(watched, "list", "--json") == 0
    page = next(one for one in json.loads(capsys.readouterr().out)["incidents"] if one["key"] == PAGE)
    assert (page["acknowledged"]["by"], page["acknowledged"]["note"]) == ("ann", "looking")
    at_once = page["acknowledged"]["at"]
    for who, note, code in (("bob", "me too", 1), ("ann", "other words", 1), ("ann", "looking", 0)):
        assert alerts(watched, "ack", PAGE, "--by", who, "--note", note) == code
        assert capsys.readouterr().out == f"{PAGE} was acknowledged by ann at {at_once} already: looking\n"
    assert alerts(watched, "ack", PAGE, "--by", "bob", "--json") == 1
    assert json.loads(capsys.readouterr().out) == {"key": PAGE, "by": "ann", "at": at_once, "note": "looking"}


def test_an_acknowledgement_is_taken_back(watched: Workspace, capsys: Captured) -> None:
    """By anybody, who reads whose it was; then the incident can be acknowledged anew."""
    assert alerts(watched, "ack", PAGE, "--by", "ann", "--note", "looking") == 0
    capsys.readouterr()
    assert alerts(watched, "unack", PAGE) == 0
    assert capsys.readouterr().out == f"{PAGE} is not acknowledged any more; it was by ann: looking\n"
    assert alerts(watched, "unack", PAGE) == 2
    told = f"no incident '{PAGE}' is open and acknowledged; acknowledged are: none"
    assert told in capsys.readouterr().err
    assert alerts(watched, "ack", PAGE, "--by", "bob") == 0
    capsys.readouterr()
    assert alerts(watched, "unack", PAGE, "--json") == 0
    assert json.loads(capsys.readouterr().out)["was"]["by"] == "bob"


def test_an_incident_is_silenced_until_it_is_not(watched: Workspace, capsys: Captured) -> None:
    """The list says until when, by whom and why; the silence is ended by its number."""
    assert alerts(watched, "silence", "orders", "--for", "2h", "--why", "upgrade", "--by", "ann", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["number"], made["target"], made["is_active"]) == (1, "orders", True)
    assert alerts(watched, "list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    page = next(one for one in told["incidents"] if one["key"] == PAGE)
    assert (page["silenced_until"], told["silences"]) == (made["until"], [made])
    assert alerts(watched, "list") == 0
    out = capsys.readouterr().out
    assert f"{PAGE}  since 2026-01-01T00:00:00Z, places: 1, silenced until {made['until']}\n" in out
    assert f"silence 1: orders, until {made['until']}, by ann: upgrade\n" in out
    assert alerts(watched, "unsilence", "1") == 0
    assert capsys.readouterr().out == "silence 1 is over\n"
    assert alerts(watched, "unsilence", "1") == 2
    assert "there is no silence 1 that lasts: hopwatch alerts list shows them" in capsys.readouterr().err
    assert alerts(watched, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["silences"] == []


def test_a_maintenance_window_is_a_silence_to_come(watched: Workspace, capsys: Captured) -> None:
    """Of all, of a stream or of an incident that was ever open."""
    for target, words in (("*", "all incidents"), (PAGE, PAGE)):
        asked = ("silence", target, "--from", "2999-01-01T00:00:00Z", "--for", "4h", "--why", "restore", "--by", "ann")
        assert alerts(watched, *asked) == 0
        told = f"{words}, from 2999-01-01T00:00:00Z until 2999-01-01T04:00:00Z, by ann: restore\n"
        assert told in capsys.readouterr().out
    assert alerts(watched, "unsilence", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"number": 2}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nix", "--for", "2h", "--why", "x"), "'nix' is no stream, and no incident of this key was ever open: orders"),
        (("loss/page/nix", "--for", "2h", "--why", "x"), "no incident of this key was ever open"),
        (("heartbeat/ticket/*", "--for", "2h", "--why", "x"), "is the heartbeat, whose absence is its message"),
        (("orders", "--for", "soon", "--why", "x"), "--for: a duration is a whole number with ms, s, m, h or d"),
        (("orders", "--for", "0s", "--why", "x"), "--for: this duration is longer than zero, got '0s'"),
        (("orders", "--for", "2h", "--why", " "), "--why and --by are one line of printable text, got ' '"),
        (("orders", "--for", "2h", "--why", "a\nb"), "--why and --by are one line of printable text"),
        (("orders", "--for", "2h", "--why", "x", "--from", "2026-01-01"), "would be over since 2026-01-01T02:00:00Z"),
        (("orders", "--for", "2h", "--why", "x", "--from", "soon"), "--from is a time such as"),
    ],
)
def test_a_silence_that_cannot_be_is_refused(
    watched: Workspace, capsys: Captured, arguments: tuple[str, ...], told: str
) -> None:
    """With what is wrong; nothing is silenced."""
    assert alerts(watched, "silence", *arguments) == 2
    assert told in capsys.readouterr().err
    assert alerts(watched, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["silences"] == []


def test_suggested_thresholds_can_be_pasted(
    watched: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with what it would have caught; the configuration takes them, and the program goes on."""
    monkeypatch.setattr("hopwatch.cli.alerts.SystemClock", lambda: ManualClock(at(1_440)))
    asked = ("suggest", "--days", "2")
    assert alerts(watched, *asked) == 0
    pasted = capsys.readouterr().out
    assert "# loss at b of orders: would not have fired in 0.0 days; the threshold is 0.01 now\n" in pasted
    watched.configure(CONFIGURATION + pasted)
    rules = {
        rule.name: rule for rule in rule_config.build_rules(settings.load(watched.config, flags={}, environ={})).rules
    }
    assert {"loss-orders-b", "lag-orders-a", "lag-orders-b"} <= rules.keys()
    assert rules["loss-orders-b"].nodes == {"b"}
    watched.configure(CONFIGURATION + RULES)
    assert alerts(watched, *asked, "--json") == 0
    told = json.loads(capsys.readouterr().out)["suggestions"]
    loss = next(one for one in told if (one["kind"], one["node"]) == ("loss", "b"))
    assert (loss["stream"], loss["rule"], loss["threshold_now"], len(loss["alerts"])) == ("orders", "loss", 0.01, 0)
    assert loss["windows"] > 0


def test_a_store_without_windows_suggests_nothing(workspace: Workspace, capsys: Captured) -> None:
    """And says so, as a comment that can be pasted, too."""
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    engine.dispose()
    assert alerts(workspace, "suggest") == 0
    assert capsys.readouterr().out == "# the store has no final window of these streams to learn from\n"
    assert alerts(workspace, "suggest", "--stream", "nix") == 2
    assert "--stream names 'nix', the configuration has: orders" in capsys.readouterr().err


def test_an_incident_that_came_again_is_taken_on_anew(watched: Workspace, capsys: Captured) -> None:
    """An acknowledgement ends with its incident; a later one under the same key needs its own."""
    assert alerts(watched, "ack", PAGE, "--by", "ann") == 0
    engine = dialect.create_engine(watched.store_url)
    incidents = tables.alert_incidents
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(update(incidents).values(opened_us=incidents.c.opened_us + 1))
    engine.dispose()
    capsys.readouterr()
    assert alerts(watched, "ack", PAGE, "--by", "bob") == 0
    assert capsys.readouterr().out == f"{PAGE} is acknowledged by bob\n"


def test_the_heartbeat_is_shown_apart(watched: Workspace, capsys: Captured) -> None:
    """A heartbeat is no incident: it comes after the others, on a line of its own."""
    assert alerts(watched, "list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["key"] for one in told["heartbeats"]] == ["heartbeat/ticket/*"]
    assert PAGE in [one["key"] for one in told["incidents"]]
    assert "heartbeat" not in {one["kind"] for one in told["incidents"]}
    assert alerts(watched, "list") == 0
    *_, last = lines = capsys.readouterr().out.splitlines()
    assert last.startswith("heartbeat: heartbeat/ticket/*, alive: the monitor has judged up to 2026-01-01T")
    assert sum("heartbeat" in line for line in lines) == 1
    watched.configure(CONFIGURATION)
    engine = dialect.create_engine(watched.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(delete(tables.alert_incidents).where(tables.alert_incidents.c.key != "heartbeat/ticket/*"))
    engine.dispose()
    assert alerts(watched, "list") == 0
    assert capsys.readouterr().out.splitlines()[0] == "no incident is open"


def test_who_takes_it_on_is_the_user(watched: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless another name is given; of a user without a name nobody knows. A note is shown with the incident."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(getpass, "getuser", lambda: "eve")
    assert alerts(watched, "ack", PAGE, "--json") == 0
    assert json.loads(capsys.readouterr().out).items() >= {"key": PAGE, "by": "eve", "note": ""}.items()
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert alerts(watched, "ack", "set_aside/ticket/*", "--note", "looking") == 0
    assert capsys.readouterr().out == "set_aside/ticket/* is acknowledged by somebody\n"
    assert alerts(watched, "list") == 0
    assert "places: 1, acknowledged by somebody: looking\n" in capsys.readouterr().out


def test_a_heartbeat_is_not_taken_on(watched: Workspace, capsys: Captured) -> None:
    """A heartbeat cannot be acknowledged, and nothing is noted."""
    assert alerts(watched, "ack", "heartbeat/ticket/*", "--by", "ann") == 2
    assert capsys.readouterr().err == (
        "hopwatch: 'heartbeat/ticket/*' is the heartbeat, which stands while all is well, "
        "and no incident to acknowledge; open are: loss/page/orders, set_aside/ticket/*\n"
    )
    assert alerts(watched, "list", "--json") == 0
    (beat,) = json.loads(capsys.readouterr().out)["heartbeats"]
    assert beat["acknowledged"] is None


def test_what_is_not_open_cannot_be_taken_on(watched: Workspace, capsys: Captured) -> None:
    """Exit 2, with what is."""
    assert alerts(watched, "ack", "loss/page/nothing") == 2
    assert capsys.readouterr().err == (
        "hopwatch: no incident 'loss/page/nothing' is open; open are: loss/page/orders, set_aside/ticket/*\n"
    )


def test_a_key_may_be_as_a_receiver_shows_it(
    watched: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the name of the installation before it."""
    monkeypatch.setenv("HOPWATCH_ALERTS__INSTALLATION", "eu")
    assert alerts(watched, "ack", f"eu:{PAGE}", "--by", "ann", "--json") == 0
    assert json.loads(capsys.readouterr().out)["key"] == PAGE
    assert alerts(watched, "history", "--key", f"eu:{PAGE}", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["notifications"]) == 1


def test_what_would_steer_a_terminal_is_refused(watched: Workspace, capsys: Captured) -> None:
    """A note with control characters is refused, as others are shown it."""
    assert alerts(watched, "ack", PAGE, "--note", "\x1b[2J") == 2
    assert capsys.readouterr().err == "hopwatch: --by and --note are one line of printable text, got '\\x1b[2J'\n"


def test_what_was_told_is_kept(watched: Workspace, capsys: Captured) -> None:
    """The newest first, with how each channel took it; by key, from a moment on, and so many."""
    assert alerts(watched, "history", "--json") == 0
    told = json.loads(capsys.readouterr().out)["notifications"]
    assert [one["key"] for one in told] == [PAGE, "set_aside/ticket/*", "heartbeat/ticket/*"]
    waiting = {"state": "waiting", "tries": 0, "last_error": ""}
    assert told[0]["channels"] == [{"channel": name} | waiting for name in ("chat", "pager")]
    for arguments, expected in (
        (("--key", PAGE), 1),
        (("--most", "2"), 2),
        (("--from", "2026-01-01T00:00:00Z"), 3),
        (("--from", "2027-01-01T00:00:00Z"), 0),
    ):
        assert alerts(watched, "history", "--json", *arguments) == 0
        assert len(json.loads(capsys.readouterr().out)["notifications"]) == expected
    assert alerts(watched, "history", "--key", PAGE) == 0
    out = capsys.readouterr().out
    head, summary, *channels = out.splitlines()
    assert head.split()[1:] == ["firing", PAGE]
    assert summary.startswith("    lost: ")
    assert channels == ["    chat: waiting", "    pager: waiting"]
    assert alerts(watched, "history", "--key", "nothing") == 0
    assert capsys.readouterr().out == "no notification\n"


def test_how_a_channel_failed_is_shown(watched: Workspace, capsys: Captured) -> None:
    """A failed delivery is shown with its number of tries and its last error."""
    engine = dialect.create_engine(watched.store_url)
    for delivery in outbox.query_due(engine, 0, channel="pager"):
        outbox.mark_failed(engine, delivery, "HTTP 503", 0)
    engine.dispose()
    assert alerts(watched, "history", "--key", PAGE) == 0
    assert "    pager: waiting, failures: 1, the last: HTTP 503\n" in capsys.readouterr().out


def opened(monkeypatch: pytest.MonkeyPatch, **outcomes: Outcome) -> dict[str, Receiver]:
    """Let the configuration open channels that answer so."""
    receivers = {name: Receiver(ManualClock()) for name in outcomes}
    for name, outcome in outcomes.items():
        if outcome != Accepted():
            receivers[name].spells.append(Spell(0, at(10_000_000), outcome))
    monkeypatch.setattr(routing, "open_routing", lambda _: Routing(receivers))
    return receivers


def test_a_test_goes_through_all_channels(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test goes to all channels as an incident of its own, begins and ends, and needs no store."""
    workspace.configure()
    receivers = opened(monkeypatch, chat=Accepted(), pager=Accepted())
    assert alerts(workspace, "test", "--severity", "ticket") == 0
    assert capsys.readouterr().out == "".join(
        f"{name}: {event}, taken\n" for event in ("firing", "resolved") for name in ("chat", "pager")
    )
    for receiver in receivers.values():
        begun, ended = (delivery.notification for _, delivery in receiver.told)
        assert begun.key == ended.key
        first, last = (build_idempotency_key(delivery) for _, delivery in receiver.told)
        assert first != last
        assert begun.key.startswith("test/ticket/test-")
        assert begun.summary.startswith("This is a test of Hopwatch's alerts")
        assert (begun.rule, begun.labels["rule"], begun.severity) == ("test", "test", "ticket")
        assert "it is over" in ended.summary
        assert receiver.is_closed
    assert not (workspace.folder / "store.db").exists()


def test_a_test_says_which_channel_has_not_taken_it(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3, with the reason; the others have it. One may be named."""
    workspace.configure()
    opened(monkeypatch, chat=Failure("HTTP 404"), odd=Failure(""), pager=Accepted())
    assert alerts(workspace, "test") == 3
    out = capsys.readouterr().out
    assert "chat: firing, failed: HTTP 404\n" in out
    assert "odd: firing, failed: it does not say why\n" in out
    assert "pager: firing, taken\n" in out
    assert alerts(workspace, "test", "--channel", "pager", "--json") == 0
    told = json.loads(capsys.readouterr().out)["channels"]
    assert [(one["channel"], one["event"], one["is_taken"], one["why"]) for one in told] == [
        ("pager", "firing", True, None),
        ("pager", "resolved", True, None),
    ]


def test_a_test_needs_a_channel(workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 2: where there is none, and where there is none of that name."""
    workspace.configure()
    assert alerts(workspace, "test") == 2
    assert capsys.readouterr().err == "hopwatch: no channel is configured: add a table [alerts.channels.NAME]\n"
    opened(monkeypatch, chat=Accepted(), pager=Accepted())
    assert alerts(workspace, "test", "--channel", "chatt") == 2
    assert capsys.readouterr().err == "hopwatch: --channel names 'chatt', the configuration has: chat, pager\n"


def test_a_fault_of_a_channel_fails_its_test_alone(
    workspace: Workspace, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words may hold a secret."""

    class Broken(Receiver):
        def send(self, delivery: Delivery, now_us: int) -> Outcome:
            raise ValueError(f"s3cret {delivery} {now_us}")

    workspace.configure()
    monkeypatch.setattr(routing, "open_routing", lambda _: Routing({"broken": Broken(ManualClock())}))
    assert alerts(workspace, "test") == 3
    told = capsys.readouterr()
    assert "broken: firing, failed: a fault of Hopwatch's own: ValueError in send, line " in told.out
    assert "s3cret" not in told.out + told.err


def test_where_nothing_is_wrong_that_is_said(workspace: Workspace, capsys: Captured) -> None:
    """And no store is made by asking."""
    workspace.configure()
    assert alerts(workspace, "list") == 3
    assert "there is no store at " in capsys.readouterr().err
    workspace.watch()
    assert alerts(workspace, "list") == 0
    assert capsys.readouterr().out == "no incident is open\n"
    assert alerts(workspace, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"incidents": [], "pending": [], "heartbeats": [], "silences": []}
