"""The channel to Alertmanager against real ones: one incident is one alert, whatever happens on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from hopwatch.alerts.channels.alertmanager import Alertmanager as Channel
from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.events import AlertKind, Event, Notification, Severity
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from servers.alertmanager import Alertmanager, amtool
from servers.process import until
from tests.repository import ROOT
from tests.support.http_receiver import Receiver, answers, receiving
from tests.support.notifications import alert, notification

EXAMPLE: Final = ROOT / "alerts" / "alertmanager" / "alertmanager.yml"
QUIET: Final = "route: {receiver: none}\nreceivers: [{name: none}]\n"
LABELS: Final = {"team": "payments", "rule": "loss", "severity": "page", "stream": "orders"}
FIRING: Final = notification(labels=LABELS)


def paging(receiver: Receiver) -> str:
    """Return a configuration that pages a receiver at once."""
    route = {
        "receiver": "pages",
        "group_by": ["..."],
        "group_wait": "0s",
        "group_interval": "1s",
        "repeat_interval": "1h",
    }
    pages = {"name": "pages", "webhook_configs": [{"url": receiver.url("/pages"), "send_resolved": True}]}
    return json.dumps({"route": route, "receivers": [pages]})


def told(receiver: Receiver) -> list[tuple[str, int]]:
    """Return the status and the number of alerts of each notification that a receiver was sent."""
    bodies = [json.loads(request.body) for request in receiver.requests]
    return [(body["status"], len(body["alerts"])) for body in bodies]


class Sender:
    """A channel, and the notifications that go through it now."""

    def __init__(self, *instances: Alertmanager) -> None:
        """Open a channel to them all."""
        urls = [instance.url for instance in instances]
        self.channel = Channel("ops", AlertmanagerChannel.model_validate({"urls": urls}))

    def send(self, of: Notification = FIRING) -> Accepted | Failure:
        """Send one, as the outbox does."""
        return self.channel.send(
            Delivery(1, "ops", of, 0, 0, is_again=False, is_acknowledged=False), SystemClock().now_us()
        )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Yield what ends all that a test starts."""
    with ExitStack() as ends:
        yield ends


def started(stack: ExitStack, folder: Path, configuration: str = QUIET) -> Alertmanager:
    """Start an Alertmanager that ends with the test."""
    server = Alertmanager(folder, configuration)
    stack.callback(server.stop)
    server.start()
    return server


def test_an_incident_is_one_alert_from_its_beginning_to_its_end(stack: ExitStack, tmp_path: Path) -> None:
    """Told again and again with other content it stays the one alert, rings once, and ends once."""
    receiver = stack.enter_context(receiving(answers(200)))
    server = started(stack, tmp_path / "am", paging(receiver))
    sender = Sender(server)
    for round_ in range(1, 30):
        worse = alert(node=f"n{round_}", observed=round_ / 100, lost_ids=(f"{round_:032x}",))
        assert sender.send(replace(FIRING, alerts=(worse,), total=round_)) == Accepted(again_after_s=60.0)
    (one,) = server.alerts()
    assert one["labels"] == LABELS | {"alertname": "HopwatchLoss", "kind": "loss"}
    assert (one["annotations"]["node"], one["annotations"]["observed"]) == ("n29", "29.0%")
    assert one["startsAt"] == "2026-01-01T00:00:00.000Z"
    listed = json.loads(amtool("--alertmanager.url", server.url, "alert", "query", "-o", "json").stdout)
    assert [found["labels"] for found in listed] == [one["labels"]]
    until(lambda: told(receiver) == [("firing", 1)], "the page")
    assert sender.send(replace(FIRING, event=Event.RESOLVED)) == Accepted()
    until(lambda: told(receiver) == [("firing", 1), ("resolved", 1)], "its end")
    assert server.alerts() == []


def test_every_instance_has_it(stack: ExitStack, tmp_path: Path) -> None:
    """Two that do not see each other; one alone is enough while the other is down."""
    one, other = (started(stack, tmp_path / name) for name in ("one", "other"))
    sender = Sender(one, other)
    sender.send()
    assert [len(server.alerts()) for server in (one, other)] == [1, 1]
    one.kill()
    assert sender.send() == Accepted(again_after_s=60.0)
    other.kill()
    refused = sender.send()
    assert isinstance(refused, Failure)
    assert refused.why.count("Connection refused") == 2


def test_a_restart_between_two_sends_opens_no_second_incident(stack: ExitStack, tmp_path: Path) -> None:
    """A restart of Alertmanager between two sends opens no second incident, as labels identify the first."""
    receiver = stack.enter_context(receiving(answers(200)))
    server = started(stack, tmp_path / "am", paging(receiver))
    sender = Sender(server)
    sender.send()
    until(lambda: told(receiver) == [("firing", 1)], "the page")
    before = server.alerts()[0]["fingerprint"]
    server.stop()
    assert isinstance(sender.send(), Failure)
    server.start()
    assert server.alerts() == []
    sender.send(replace(FIRING, total=9))
    assert [found["fingerprint"] for found in server.alerts()] == [before]
    sender.send(replace(FIRING, event=Event.RESOLVED))
    until(lambda: ("resolved", 1) in told(receiver), "its end")
    assert told(receiver) == [("firing", 1), ("resolved", 1)]


def test_what_an_alertmanager_refuses_is_refused_for_good(stack: ExitStack, tmp_path: Path) -> None:
    """By its own words: labels that are none of its own."""
    server = started(stack, tmp_path / "am")
    refused = Sender(server).send(replace(FIRING, labels={"no label": "x"}))
    assert isinstance(refused, Failure)
    assert (refused.is_for_good, "invalid label set" in refused.why) == (True, True)


def test_the_example_is_one() -> None:
    """Amtool reads it."""
    checked = amtool("check-config", str(EXAMPLE))
    assert (checked.returncode, "SUCCESS" in checked.stdout) == (0, True), checked.stdout + checked.stderr
    assert " - 1 inhibit rules" in checked.stdout
    assert " - 4 receivers" in checked.stdout


@pytest.mark.parametrize("kind", AlertKind)
@pytest.mark.parametrize("severity", Severity)
def test_the_example_routes_every_alert(kind: AlertKind, severity: Severity) -> None:
    """Pages to pages, tickets to tickets, the heartbeat to whoever listens for its absence."""
    name = "Hopwatch" + "".join(part.capitalize() for part in kind.split("_"))
    labels = (f"alertname={name}", f"kind={kind}", f"rule={kind}", f"severity={severity}", "stream=orders")
    expected = "dead-mans-switch" if kind is AlertKind.HEARTBEAT else f"{severity}s"
    tested = amtool("config", "routes", "test", f"--config.file={EXAMPLE}", f"--verify.receivers={expected}", *labels)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_example_has_a_switch_for_each_heartbeat() -> None:
    """The example has a switch for Prometheus' heartbeat that does not hide the end of Hopwatch's own."""
    labels = ("alertname=HopwatchHeartbeat", "severity=none")
    expected = "--verify.receivers=dead-mans-switch-of-prometheus"
    tested = amtool("config", "routes", "test", f"--config.file={EXAMPLE}", expected, *labels)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_example_holds_back_tickets_of_a_stream_that_pages(stack: ExitStack, tmp_path: Path) -> None:
    """And of no other stream; each incident is a group by itself."""
    server = started(stack, tmp_path / "am", EXAMPLE.read_text("utf-8"))
    sender = Sender(server)
    sender.send()
    for stream in ("orders", "refunds"):
        labels: dict[str, Any] = LABELS | {"rule": "lag", "severity": "ticket", "stream": stream}
        sender.send(replace(FIRING, kind=AlertKind.LAG, labels=labels))
    until(lambda: any(found["status"]["inhibitedBy"] for found in server.alerts()), "the inhibition")
    held = {found["labels"]["stream"]: bool(found["status"]["inhibitedBy"]) for found in server.alerts()
            if found["labels"]["severity"] == "ticket"}  # fmt: skip
    assert held == {"orders": True, "refunds": False}
    # Its dispatcher groups alerts a moment after the API shows them.
    until(lambda: [len(group["alerts"]) for group in server.groups()] == [1, 1, 1], "a group for each incident")
