"""Tests of what PagerDuty, Slack and a webhook are told: golden values, and laws that hold whatever is told."""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import replace
from functools import cache

from hypothesis import given
from structlog.testing import capture_logs

from hopwatch.alerts.channels import pagerduty, slack, webhook
from hopwatch.alerts.channels.channel import Accepted
from hopwatch.alerts.channels.slack import Slack
from hopwatch.alerts.events import AlertKind, Event, Notification, Severity, from_json, to_json
from hopwatch.monitor.settings.channels import SlackChannel
from tests.alerts.channels.open_channels import KEY, SIGNED, open_pagerduty, open_slack, open_webhook, sent
from tests.support.deliveries import LOST, NOTIFICATIONS, NOW_US, delivery, firing, storm
from tests.support.http_receiver import answers, receiving
from tests.support.windows import at


def test_pagerduty_is_told_an_event() -> None:
    """A trigger with its place, its links and its key."""
    with receiving(answers(202)) as receiver:
        request = sent(open_pagerduty(receiver), receiver)
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
    over = pagerduty.build_event(firing(event=Event.RESOLVED))
    assert over == {"event_action": "resolve", "dedup_key": "loss/page/orders"}
    assert pagerduty.build_event(firing(severity=Severity.TICKET))["payload"]["severity"] == "warning"
    told = pagerduty.build_event(storm())["payload"]
    assert told["source"] == "hopwatch"
    assert told["custom_details"]["places"].endswith("\nand 4,980 more")


@given(NOTIFICATIONS)
def test_pagerduty_s_bounds_hold(told: Notification) -> None:
    """Key, summary and event stay within PagerDuty's bounds, and distinct keys stay distinct."""
    event = pagerduty.build_event(told)
    assert len(event["dedup_key"]) <= pagerduty.MAX_KEY
    assert pagerduty.build_dedup_key(told.key + "x" * 300) != pagerduty.build_dedup_key(told.key + "y" * 300)
    assert len(event.get("payload", {"summary": ""})["summary"]) <= pagerduty.MAX_SUMMARY
    assert len(json.dumps(event)) < 512_000


@cache
def somewhere(template: str) -> Slack:
    """Return a channel to nowhere, made once: what verifies certificates takes its time."""
    table = {"url": "https://slack.example/s", "template": template}
    return Slack("team", SlackChannel.model_validate(table))


def test_slack_is_told_a_headline_and_a_text() -> None:
    """Both escaped, and neither looked through for names and links."""
    with receiving(answers(200, b"ok")) as receiver:
        request = sent(open_slack(receiver), receiver)
    told = json.loads(request.body)
    header, section = told["blocks"]
    assert told["text"] == "[page] lost in orders (loss)"
    assert header["text"] == {"type": "plain_text", "text": "[page] lost in orders (loss)", "emoji": False}
    assert section["text"]["verbatim"] is True
    assert section["text"]["text"].splitlines()[0] == LOST.summary.replace(">", "&gt;")


@given(NOTIFICATIONS)
def test_no_name_calls_anybody_in_slack(told: Notification) -> None:
    """No name becomes a mention in Slack, and Slack's bounds hold."""
    with_template = "{{ summary }} {{ labels.team }} {% for a in alerts %}{{ a.node }}{% endfor %}"
    for template in ("", with_template):
        message = somewhere(template)._build_message(delivery(told))
        text = message["blocks"][1]["text"]["text"]
        assert 0 < len(text) <= slack.MAX_TEXT
        assert "<" not in text + message["text"]
        assert re.fullmatch(r"(?:[^&]|&amp;|&lt;|&gt;)*", text, re.DOTALL)
        assert len(message["blocks"][0]["text"]["text"]) <= 150


def test_a_template_is_what_is_said_and_may_call() -> None:
    """Slack's own language in a template stays; in its values it is escaped."""
    template = "<!here> {{ summary|upper }} at {{ alerts|length }} {{ labels.nothing }}<{{ alerts[0].link }}|look>"
    with receiving(answers(200)) as receiver:
        request = sent(open_slack(receiver, template=template), receiver, firing(summary="<!channel> a"))
    text = json.loads(request.body)["blocks"][1]["text"]["text"]
    assert text == "<!here> &LT;!CHANNEL&GT; A at 1 <https://hopwatch.example/?stream=orders&amp;node=b|look>"


def test_a_template_that_fails_does_not_keep_a_person_from_being_told() -> None:
    """The usual text goes out, and the log says why."""
    template = "{% if total > 1 %}{{ alerts[0].nodes }}{% endif %}{{ total }}"
    with receiving(answers(200)) as receiver, capture_logs() as logs:
        request = sent(open_slack(receiver, template=template), receiver, storm())
    assert "and 4,980 more" in json.loads(request.body)["blocks"][1]["text"]["text"]
    (told,) = logs
    assert told["event"] == "a template fails, the usual text goes out instead"
    assert told["why"] == "the template fails: 'dict object' has no attribute 'nodes'"


def test_a_webhook_is_told_the_contract_signed() -> None:
    """Body, signature and key of the try."""
    with receiving(answers(204)) as receiver:
        request = sent(open_webhook(receiver, headers={"X-Team": "payments"}), receiver)
    assert from_json(request.body.decode()) == firing()
    at_s = NOW_US // 1_000_000
    digest = hmac.new(SIGNED.encode(), f"{at_s}.".encode() + request.body, "sha256").hexdigest()
    assert request.headers["hopwatch-signature"] == f"t={at_s},v1={digest}"
    assert request.headers["idempotency-key"] == f"loss/page/orders#7-{at(5)}"
    assert (request.headers["x-team"], request.headers["content-type"]) == ("payments", "application/json")


def test_a_webhook_hears_each_heartbeat() -> None:
    """A dead-man's switch that is told once is no use; each beat is another one to whoever drops what he had."""
    beats = [firing(kind=AlertKind.HEARTBEAT, at_us=at(minute)) for minute in (5, 6)]
    with receiving(answers(204)) as receiver:
        channel = open_webhook(receiver)
        assert [channel.send(delivery(one), NOW_US) for one in beats] == [Accepted(again_after_s=60.0)] * 2
        assert channel.send(delivery(replace(beats[0], event=Event.RESOLVED)), NOW_US) == Accepted()
    assert len({request.headers["idempotency-key"] for request in receiver.requests[:2]}) == 2


@given(NOTIFICATIONS)
def test_the_headers_of_a_webhook_are_headers_whatever_the_key_is(told: Notification) -> None:
    """One line of ASCII; without a secret nothing is signed."""
    key = webhook.build_idempotency_key(delivery(told))
    assert key.isascii()
    assert key.isprintable()
    assert len(key) < 500
    to_json(told).encode("utf-8", "replace")
