"""Tests of what Alertmanager is told, and what becomes of it when one of several has it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from structlog.testing import capture_logs

from hopwatch.alerts.channels import alertmanager
from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.events import AlertKind, Event, Notification
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from servers.process import until
from tests.alerts.channels.open_channels import open_alertmanager, sent
from tests.repository import ROOT
from tests.support.deliveries import LOST, NOTIFICATIONS, NOW_US, delivery, firing
from tests.support.http_receiver import answers, hangs, receiving

MINUTE_US: Final = 60_000_000


def test_alertmanager_is_told_one_alert() -> None:
    """Its labels are what does not change, its annotations what does; it ends four resends from now."""
    with receiving(answers(200)) as receiver:
        request = sent(open_alertmanager(receiver, labels={"cluster": "eu"}), receiver)
    assert request.path == "/api/v2/alerts"
    assert json.loads(request.body) == [
        {
            "labels": {
                "alertname": "HopwatchLoss",
                "cluster": "eu",
                "kind": "loss",
                "rule": "loss",
                "severity": "page",
                "stream": "orders",
                "team": "payments",
            },
            "annotations": {
                "summary": LOST.summary,
                "description": LOST.summary,
                "places": "1",
                "key": "loss/page/orders",
                "word": "lost",
                "node": "b",
                "edge": "a -> b",
                "since": "2026-01-01T00:00:00Z",
                "window": "2026-01-01T00:01:00Z",
                "observed": "2.00%",
                "threshold": "1.00%",
                "affected": "20 of 1,000",
                "lost_ids": f"{'0a' * 16} {'0b' * 16}",
                "runbook_url": "https://wiki.example/loss.md",
                "dashboard": "https://hopwatch.example/?stream=orders&node=b",
            },
            "startsAt": "2026-01-01T00:00:00.000Z",
            "endsAt": "2026-01-01T00:10:00.000Z",
            "generatorURL": "https://hopwatch.example/?stream=orders&node=b",
        }
    ]


def test_a_heartbeat_has_no_figures() -> None:
    """A heartbeat says that the monitor lives, and has no observed value, threshold or count."""
    beat = replace(LOST, kind=AlertKind.HEARTBEAT, summary="alive")
    said = alertmanager.build_annotations(
        replace(firing(), kind=AlertKind.HEARTBEAT, alerts=(beat,)), is_acknowledged=False
    )
    assert {"observed", "threshold", "affected"} & said.keys() == set()
    assert said["description"] == "alive"


def test_alertmanager_wants_it_again_until_it_is_over() -> None:
    """An alert that is over ends now; whether somebody has taken it on is no label."""
    told = alertmanager.build_alert(delivery(is_acknowledged=True), NOW_US, 30_000_000, {})
    over = alertmanager.build_alert(delivery(firing(event=Event.RESOLVED)), NOW_US, 30_000_000, {})
    assert told["annotations"]["acknowledged"] == "yes"
    assert (told["endsAt"], over["endsAt"]) == ("2026-01-01T00:08:00.000Z", "2026-01-01T00:06:00.000Z")
    assert told["labels"] == over["labels"]
    with receiving(answers(200)) as receiver:
        channel = open_alertmanager(receiver, resend="30s")
        assert channel.send(delivery(), NOW_US) == Accepted(again_after_s=30.0)
        assert channel.send(delivery(firing(event=Event.RESOLVED)), NOW_US) == Accepted()
        channel.close()


@given(NOTIFICATIONS, NOTIFICATIONS)
def test_the_labels_are_of_the_incident_and_not_of_its_moment(one: Notification, other: Notification) -> None:
    """All notifications of an incident have the same labels, and an end is never before its beginning."""
    later = replace(other, labels=one.labels, kind=one.kind)
    first, second = (alertmanager.build_alert(delivery(told), NOW_US, MINUTE_US, {}) for told in (one, later))
    assert first["labels"] == second["labels"]
    assert all(first["labels"].values())
    assert first["startsAt"] <= first["endsAt"]
    assert all(0 < len(text) <= alertmanager.MAX_ANNOTATION for text in first["annotations"].values())
    json.dumps(first).encode()


def test_one_alertmanager_that_takes_it_is_enough() -> None:
    """One that fails is logged when it begins, and when it is back, not at every resend."""
    bad = [answers(500), answers(500), answers(200), answers(200)]
    with receiving(answers(200)) as good, receiving(*bad) as other, capture_logs() as logs:
        channel = open_alertmanager(good, other)
        assert [type(channel.send(delivery(), NOW_US)) for _ in range(4)] == [Accepted] * 4
        channel.close()
    place = other.url("")
    assert logs == [
        {
            "event": "an Alertmanager fails",
            "log_level": "warning",
            "channel": "ops",
            "why": f"{place} answered 500",
        },
        {"event": "an Alertmanager is back", "log_level": "info", "channel": "ops", "place": place},
    ]


def test_what_no_alertmanager_takes_has_failed() -> None:
    """For good only if all say so; the shortest wait of those that ask for one counts."""
    with receiving(answers(400)) as one, receiving(answers(429, Retry_After="5")) as other:
        channel = open_alertmanager(one, other)
        told = f"{one.url('')} answered 400; {other.url('')} answered 429"
        assert channel.send(delivery(), NOW_US) == Failure(told, wait_s=5.0, within_s=15.0)
        channel.close()
    both = [Failure("a", is_for_good=True), Failure("b", is_for_good=True)]
    assert alertmanager.merge_failures(both) == Failure("a; b", is_for_good=True)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"bearer_token": "t0ken"}, "Bearer t0ken"),
        ({"username": "me", "password": "p4ss"}, "Basic " + b64encode(b"me:p4ss").decode()),
    ],
)
def test_alertmanager_lets_in_by_token_or_password(more: dict[str, str], expected: str) -> None:
    """As Prometheus does it."""
    with receiving(answers(200)) as receiver:
        assert sent(open_alertmanager(receiver, **more), receiver).headers["authorization"] == expected


@pytest.mark.parametrize("kind", AlertKind)
def test_every_kind_has_a_name_as_operators_write_them(kind: AlertKind) -> None:
    """In CamelCase, after Hopwatch."""
    assert re.fullmatch(r"Hopwatch([A-Z][a-z]+)+", alertmanager.build_labels(firing(kind=kind), {})["alertname"])


ENDS: Final = """
import sys, threading
from hopwatch.alerts.channels.alertmanager import Alertmanager
from hopwatch.monitor.settings.channels import AlertmanagerChannel
from tests.support.deliveries import NOW_US, delivery
urls = sys.argv[1:]
channel = Alertmanager("ops", AlertmanagerChannel.model_validate({"urls": urls, "timeout": "60s"}))
threading.Thread(target=channel.send, args=(delivery(), NOW_US), daemon=True).start()
sys.stdin.readline()
channel.close()
"""


def test_a_process_does_not_wait_for_an_alertmanager_that_hangs() -> None:
    """A process ends while its posts to Alertmanager hang."""
    with receiving(hangs) as one, receiving(hangs) as other:
        command = [sys.executable, "-c", ENDS, one.url(), other.url()]
        with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT) as process:
            try:
                until(lambda: len(one.requests) + len(other.requests) == 2, "the posts", 30)
                process.communicate(b"\n", timeout=20)
            finally:
                process.kill()
    assert process.returncode == 0


def test_the_path_of_an_alertmanager_is_not_logged() -> None:
    """A service of Alertmanagers for many may have a key in it."""
    with receiving(answers(500), answers(200)) as bad, receiving(answers(200)) as good, capture_logs() as logs:
        urls = [good.url(), bad.url("/T0P-5ECRET/am")]
        channel = alertmanager.Alertmanager("ops", AlertmanagerChannel.model_validate({"urls": urls}))
        assert [type(channel.send(delivery(), NOW_US)) for _ in range(2)] == [Accepted] * 2
    assert len(logs) == 2
    assert "T0P" not in str(logs)
