"""Tests of what each receiver by HTTP is told: golden values, and laws that hold whatever is told."""

from __future__ import annotations

import hmac
import json
import re
from base64 import b64encode
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from structlog.testing import capture_logs

from alerts.channels import alertmanager, pagerduty, slack, webhook
from alerts.channels.alertmanager import Alertmanager
from alerts.channels.channel import Channel, Failed, Taken
from alerts.channels.opened import opened
from alerts.channels.pagerduty import PagerDuty
from alerts.channels.slack import Slack
from alerts.channels.webhook import Webhook
from alerts.events import Event, Kind, Notification, Severity, from_json, to_json
from monitor.settings.channels import (
    AlertmanagerChannel,
    AnyChannel,
    PagerDutyChannel,
    SlackChannel,
    WebhookChannel,
)
from tests.alerts.channels.made import LOST, NOTIFICATIONS, NOW_US, delivery, firing, storm
from tests.alerts.channels.receiver import Behaviour, Receiver, Request, answers, closes, receiving

MINUTE_US: Final = 60_000_000
KEY: Final = "R0utingKey-of-32-characters-long"
SIGNED: Final = "a-secret-of-some-length"


def sent(channel: Channel, receiver: Receiver, of: Notification | None = None) -> Request:
    """Send something, and return what came."""
    assert isinstance(channel.send(delivery(of), NOW_US), Taken)
    channel.close()
    return receiver.requests[-1]


def of_alertmanager(*receivers: Receiver, **more: Any) -> Alertmanager:  # noqa: ANN401 - keys of the table
    """Return a channel to these instances."""
    urls = [receiver.url() for receiver in receivers]
    return Alertmanager("ops", AlertmanagerChannel.model_validate({"urls": urls} | more))


def test_alertmanager_is_told_one_alert() -> None:
    """Its labels are what does not change, its annotations what does; it ends four resends from now."""
    with receiving(answers(200)) as receiver:
        request = sent(of_alertmanager(receiver, labels={"cluster": "eu"}), receiver)
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


def test_alertmanager_wants_it_again_until_it_is_over() -> None:
    """An alert that is over ends now; whether somebody has taken it on is no label."""
    told = alertmanager.alert(delivery(is_acknowledged=True), NOW_US, 30_000_000, {})
    over = alertmanager.alert(delivery(firing(event=Event.RESOLVED)), NOW_US, 30_000_000, {})
    assert told["annotations"]["acknowledged"] == "yes"
    assert (told["endsAt"], over["endsAt"]) == ("2026-01-01T00:08:00.000Z", "2026-01-01T00:06:00.000Z")
    assert told["labels"] == over["labels"]
    with receiving(answers(200)) as receiver:
        channel = of_alertmanager(receiver, resend="30s")
        assert channel.send(delivery(), NOW_US) == Taken(again_after_s=30.0)
        assert channel.send(delivery(firing(event=Event.RESOLVED)), NOW_US) == Taken()
        channel.close()


@given(NOTIFICATIONS, NOTIFICATIONS)
def test_the_labels_are_of_the_incident_and_not_of_its_moment(one: Notification, other: Notification) -> None:
    """Whatever it says later, of the same incident they are the same; an end does not lie before its beginning."""
    later = replace(other, labels=one.labels, kind=one.kind)
    first, second = (alertmanager.alert(delivery(told), NOW_US, MINUTE_US, {}) for told in (one, later))
    assert first["labels"] == second["labels"]
    assert all(first["labels"].values())
    assert first["startsAt"] <= first["endsAt"]
    assert all(0 < len(text) <= alertmanager.MOST_ANNOTATION for text in first["annotations"].values())
    json.dumps(first).encode()


def test_one_alertmanager_that_takes_it_is_enough() -> None:
    """One that fails is logged when it begins, and when it is back, not at every resend."""
    bad = [answers(500), answers(500), answers(200), answers(200)]
    with receiving(answers(200)) as good, receiving(*bad) as other, capture_logs() as logs:
        channel = of_alertmanager(good, other)
        assert [type(channel.send(delivery(), NOW_US)) for _ in range(4)] == [Taken] * 4
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
        channel = of_alertmanager(one, other)
        told = f"{one.url('')} answered 400; {other.url('')} answered 429"
        assert channel.send(delivery(), NOW_US) == Failed(told, wait_s=5.0)
        channel.close()
    both = [Failed("a", is_for_good=True), Failed("b", is_for_good=True)]
    assert alertmanager.together(both) == Failed("a; b", is_for_good=True)


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
        assert sent(of_alertmanager(receiver, **more), receiver).headers["authorization"] == expected


def of_pagerduty(receiver: Receiver) -> PagerDuty:
    """Return a channel to a receiver that stands for PagerDuty."""
    return PagerDuty(PagerDutyChannel.model_validate({"routing_key": KEY, "url": receiver.url("/v2/enqueue")}))


def test_pagerduty_is_told_an_event() -> None:
    """A trigger with its place, its links and its key."""
    with receiving(answers(202)) as receiver:
        request = sent(of_pagerduty(receiver), receiver)
    assert json.loads(request.body) == {
        "routing_key": KEY,
        "event_action": "trigger",
        "dedup_key": "loss/page/orders",
        "client": "Hopwatch",
        "payload": {
            "summary": LOST.summary,
            "source": "orders",
            "severity": "critical",
            "timestamp": "2026-01-01T00:00:00Z",
            "class": "loss",
            "component": "b",
            "group": "orders",
            "custom_details": {
                "places": LOST.summary,
                "observed": "2.00%",
                "threshold": "1.00%",
                "lost_ids": f"{'0a' * 16} {'0b' * 16}",
                "label_team": "payments",
                "label_rule": "loss",
                "label_severity": "page",
                "label_stream": "orders",
                "key": "loss/page/orders",
            },
        },
        "links": [
            {"href": "https://wiki.example/loss.md", "text": "runbook"},
            {"href": "https://hopwatch.example/?stream=orders&node=b", "text": "dashboard"},
        ],
    }


def test_pagerduty_is_told_the_end_by_the_key() -> None:
    """And a ticket is a warning; a storm counts what it does not name."""
    over = pagerduty.event(firing(event=Event.RESOLVED))
    assert over == {"event_action": "resolve", "dedup_key": "loss/page/orders"}
    assert pagerduty.event(firing(severity=Severity.TICKET))["payload"]["severity"] == "warning"
    told = pagerduty.event(storm())["payload"]
    assert told["source"] == "hopwatch"
    assert told["custom_details"]["places"].endswith("\nand 4,980 more")


@given(NOTIFICATIONS)
def test_pagerduty_s_bounds_hold(told: Notification) -> None:
    """Of key, summary and event; keys that differ stay different."""
    event = pagerduty.event(told)
    assert len(event["dedup_key"]) <= pagerduty.MOST_KEY
    assert pagerduty.dedup_key(told.key + "x" * 300) != pagerduty.dedup_key(told.key + "y" * 300)
    assert len(event.get("payload", {"summary": ""})["summary"]) <= pagerduty.MOST_SUMMARY
    assert len(json.dumps(event)) < 512_000


def of_slack(receiver: Receiver, **more: str) -> Slack:
    """Return a channel to a receiver that stands for Slack."""
    return Slack("team", SlackChannel.model_validate({"url": receiver.url("/services/T0/B0/x")} | more))


def test_slack_is_told_a_headline_and_a_text() -> None:
    """Both escaped, and neither looked through for names and links."""
    with receiving(answers(200, b"ok")) as receiver:
        request = sent(of_slack(receiver), receiver)
    told = json.loads(request.body)
    header, section = told["blocks"]
    assert told["text"] == "[page] lost in orders (loss)"
    assert header["text"] == {"type": "plain_text", "text": "[page] lost in orders (loss)", "emoji": False}
    assert section["text"]["verbatim"] is True
    assert section["text"]["text"].splitlines()[0] == LOST.summary.replace(">", "&gt;")


@given(NOTIFICATIONS)
def test_no_name_calls_anybody_in_slack(told: Notification) -> None:
    """Whatever it is made of; and Slack's bounds hold."""
    with_template = {"template": "{{ summary }} {{ labels.team }} {% for a in alerts %}{{ a.node }}{% endfor %}"}
    for more in ({}, with_template):
        channel = Slack("team", SlackChannel.model_validate({"url": "https://slack.example/s"} | more))
        message = channel._message(delivery(told))
        text = message["blocks"][1]["text"]["text"]
        assert 0 < len(text) <= slack.MOST_TEXT
        assert "<" not in text + message["text"]
        assert re.fullmatch(r"(?:[^&]|&amp;|&lt;|&gt;)*", text, re.DOTALL)
        assert len(message["blocks"][0]["text"]["text"]) <= 150


def test_a_template_is_what_is_said_and_may_call() -> None:
    """What it has by itself is Slack's own language; its values are not."""
    template = "<!here> {{ summary|upper }} at {{ alerts|length }} {{ labels.nothing }}<{{ alerts[0].link }}|look>"
    with receiving(answers(200)) as receiver:
        request = sent(of_slack(receiver, template=template), receiver, firing(summary="<!channel> a"))
    text = json.loads(request.body)["blocks"][1]["text"]["text"]
    assert text == "<!here> &LT;!CHANNEL&GT; A at 1 <https://hopwatch.example/?stream=orders&amp;node=b|look>"


def test_a_template_that_fails_does_not_keep_a_person_from_being_told() -> None:
    """The usual text goes out, and the log says why."""
    template = "{% if total > 1 %}{{ alerts[0].nodes }}{% endif %}{{ total }}"
    with receiving(answers(200)) as receiver, capture_logs() as logs:
        request = sent(of_slack(receiver, template=template), receiver, storm())
    assert "and 4,980 more" in json.loads(request.body)["blocks"][1]["text"]["text"]
    (told,) = logs
    assert told["event"] == "a template fails, the usual text goes out instead"
    assert told["why"] == "the template fails: 'dict object' has no attribute 'nodes'"


def of_webhook(receiver: Receiver, **more: Any) -> Webhook:  # noqa: ANN401 - keys of the table
    """Return a channel to a receiver of one's own."""
    return Webhook(WebhookChannel.model_validate({"url": receiver.url("/hook"), "secret": SIGNED} | more))


def test_a_webhook_is_told_the_contract_signed() -> None:
    """Body, signature and key of the try."""
    with receiving(answers(204)) as receiver:
        request = sent(of_webhook(receiver, headers={"X-Team": "payments"}), receiver)
    assert from_json(request.body.decode()) == firing()
    at_s = NOW_US // 1_000_000
    digest = hmac.new(SIGNED.encode(), f"{at_s}.".encode() + request.body, "sha256").hexdigest()
    assert request.headers["hopwatch-signature"] == f"t={at_s},v1={digest}"
    assert request.headers["idempotency-key"] == "loss/page/orders#7"
    assert (request.headers["x-team"], request.headers["content-type"]) == ("payments", "application/json")


@given(NOTIFICATIONS)
def test_the_headers_of_a_webhook_are_headers_whatever_the_key_is(told: Notification) -> None:
    """One line of ASCII; without a secret nothing is signed."""
    key = webhook.idempotency_key(delivery(told))
    assert key.isascii()
    assert key.isprintable()
    assert len(key) < 500
    to_json(told).encode("utf-8", "replace")


SECRET_URL: Final = "/services/T0P/5ECRET/path"  # noqa: S105 - of nothing
TABLES: Final[list[dict[str, Any]]] = [
    {"kind": "alertmanager", "bearer_token": "T0P-5ECRET-token"},
    {"kind": "alertmanager", "username": "me", "password": "T0P-5ECRET-password"},
    {"kind": "pagerduty", "routing_key": "T0P-5ECRET-routing-key"},
    {"kind": "slack", "url": SECRET_URL},
    {"kind": "webhook", "url": SECRET_URL, "secret": "T0P-5ECRET-signing", "headers": {"X-Key": "T0P-5ECRET-header"}},
]
OF_KIND: Final[dict[str, type[AnyChannel]]] = {
    "alertmanager": AlertmanagerChannel,
    "pagerduty": PagerDutyChannel,
    "slack": SlackChannel,
    "webhook": WebhookChannel,
}


@pytest.mark.parametrize("table", TABLES, ids="-".join)
@pytest.mark.parametrize("behaviour", [answers(500), closes, answers(302, b"", Location="http://T0P/")])
def test_no_secret_is_ever_said(table: dict[str, Any], behaviour: Behaviour) -> None:
    """Neither by an outcome, nor a log, nor by what a debugger shows."""
    with receiving(behaviour) as receiver, capture_logs() as logs:
        place: dict[str, Any] = {"url": receiver.url(table.get("url", "/"))}
        if table["kind"] == "alertmanager":
            place = {"urls": [receiver.url()]}
        made = OF_KIND[table["kind"]].model_validate(table | place)
        channels = opened({"ops": made})
        outcome = channels.channels["ops"].send(delivery(), NOW_US)
        channels.close()
    assert isinstance(outcome, Failed)
    assert "T0P" not in f"{outcome} {logs} {made!r} {made} {channels!r} {channels.channels}"


def test_what_a_careless_receiver_repeats_is_not_said_again() -> None:
    """Not even by an answer that holds all that it was told."""
    table = TABLES[-1]
    told = [table["url"], table["secret"], *table["headers"].values()]
    with receiving(answers(403, " ".join(told).encode())) as receiver:
        outcome = of_webhook(receiver, **table | {"url": receiver.url(SECRET_URL)}).send(delivery(), NOW_US)
    assert outcome == Failed(f"{receiver.url('')} answered 403: *** *** ***")


@settings(max_examples=20)
@given(NOTIFICATIONS)
def test_every_channel_takes_whatever_comes(told: Notification) -> None:
    """None fails for what a name is made of."""
    with receiving(answers(200)) as receiver:
        for channel in (of_alertmanager(receiver), of_pagerduty(receiver), of_slack(receiver), of_webhook(receiver)):
            assert isinstance(channel.send(delivery(told), NOW_US), Taken)
            channel.close()
        for request in receiver.requests:
            json.loads(request.body)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_name_as_operators_write_them(kind: Kind) -> None:
    """In CamelCase, after Hopwatch."""
    assert re.fullmatch(r"Hopwatch([A-Z][a-z]+)+", alertmanager.labels(firing(kind=kind), {})["alertname"])
