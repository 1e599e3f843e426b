"""Channels to receivers of a test."""

from __future__ import annotations

from typing import Any, Final

from hopwatch.alerts.channels.alertmanager import Alertmanager
from hopwatch.alerts.channels.channel import Accepted, Channel
from hopwatch.alerts.channels.pagerduty import PagerDuty
from hopwatch.alerts.channels.slack import Slack
from hopwatch.alerts.channels.webhook import Webhook
from hopwatch.alerts.events import Notification
from hopwatch.monitor.settings.channels import AlertmanagerChannel, PagerDutyChannel, SlackChannel, WebhookChannel
from tests.support.deliveries import NOW_US, delivery
from tests.support.http_receiver import Receiver, Request

KEY: Final = "R0utingKey-of-32-characters-long"
SIGNED: Final = "a-secret-of-some-length"


def sent(channel: Channel, receiver: Receiver, of: Notification | None = None) -> Request:
    """Send something, and return what came."""
    assert isinstance(channel.send(delivery(of), NOW_US), Accepted)
    channel.close()
    return receiver.requests[-1]


def open_alertmanager(*receivers: Receiver, **more: Any) -> Alertmanager:  # noqa: ANN401 - keys of the table
    """Return a channel to these instances."""
    urls = [receiver.url() for receiver in receivers]
    return Alertmanager("ops", AlertmanagerChannel.model_validate({"urls": urls} | more))


def open_pagerduty(receiver: Receiver) -> PagerDuty:
    """Return a channel to a receiver that stands for PagerDuty."""
    return PagerDuty(PagerDutyChannel.model_validate({"routing_key": KEY, "url": receiver.url("/v2/enqueue")}))


def open_slack(receiver: Receiver, **more: str) -> Slack:
    """Return a channel to a receiver that stands for Slack."""
    return Slack("team", SlackChannel.model_validate({"url": receiver.url("/services/T0/B0/x")} | more))


def open_webhook(receiver: Receiver, **more: Any) -> Webhook:  # noqa: ANN401 - keys of the table
    """Return a channel to a receiver of one's own."""
    return Webhook(WebhookChannel.model_validate({"url": receiver.url("/hook"), "secret": SIGNED} | more))
