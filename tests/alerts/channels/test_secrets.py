"""Tests of all channels by HTTP: no secret is said, and no name is too much for them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from structlog.testing import capture_logs

from hopwatch.alerts.channels.channel import Accepted, Failure
from hopwatch.alerts.channels.factory import open_channels
from hopwatch.alerts.events import Notification
from hopwatch.monitor.settings.channels import (
    AlertmanagerChannel,
    AnyChannel,
    PagerDutyChannel,
    SlackChannel,
    WebhookChannel,
)
from tests.alerts.channels.open_channels import open_alertmanager, open_pagerduty, open_slack, open_webhook
from tests.support.deliveries import NOTIFICATIONS, NOW_US, delivery
from tests.support.examples import examples
from tests.support.http_receiver import Behaviour, answers, closes, receiving

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
        channels = open_channels({"ops": made})
        outcome = channels.channels["ops"].send(delivery(), NOW_US)
        channels.close()
    assert isinstance(outcome, Failure)
    assert "T0P" not in f"{outcome} {logs} {made!r} {made} {channels!r} {channels.channels}"


def test_what_a_careless_receiver_repeats_is_not_said_again() -> None:
    """Not even by an answer that holds all that it was told."""
    table = TABLES[-1]
    told = [table["url"], table["secret"], *table["headers"].values()]
    with receiving(answers(403, " ".join(told).encode())) as receiver:
        outcome = open_webhook(receiver, **table | {"url": receiver.url(SECRET_URL)}).send(delivery(), NOW_US)
    assert outcome == Failure(f"{receiver.url('')} answered 403: *** *** ***")


@pytest.mark.parametrize("path", ["/hook?key=T0P-5ECRET&v=2", "/api/T0P-5ECRET/send", "/hook?key=T0P%2D5ECRET"])
def test_what_is_secret_in_a_url_is_not_said_without_the_rest_of_it(path: str) -> None:
    """A receiver says which key it does not know, not by which URL it was asked."""
    with receiving(answers(403, b'{"error": "unknown key T0P-5ECRET"}')) as receiver:
        outcome = open_webhook(receiver, url=receiver.url(path)).send(delivery(), NOW_US)
    assert outcome == Failure(f'{receiver.url("")} answered 403: {{"error": "unknown key ***"}}')


@settings(max_examples=examples(10))
@given(NOTIFICATIONS)
def test_every_channel_takes_whatever_comes(told: Notification) -> None:
    """None fails for what a name is made of."""
    with receiving(answers(200)) as receiver:
        for channel in (
            open_alertmanager(receiver),
            open_pagerduty(receiver),
            open_slack(receiver),
            open_webhook(receiver),
        ):
            assert isinstance(channel.send(delivery(told), NOW_US), Accepted)
            channel.close()
        for request in receiver.requests:
            json.loads(request.body)
