"""Factory of notification channels: opens those of the settings, with their routes and fallbacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from hopwatch.alerts.channels.alertmanager import Alertmanager
from hopwatch.alerts.channels.channel import Channel, Failure, Outcome
from hopwatch.alerts.channels.command import Command
from hopwatch.alerts.channels.mail import Mail
from hopwatch.alerts.channels.pagerduty import PagerDuty
from hopwatch.alerts.channels.routing import Routes, Routing
from hopwatch.alerts.channels.slack import Slack
from hopwatch.alerts.channels.webhook import Webhook
from hopwatch.alerts.events import AlertKind, Notification, qualify_key
from hopwatch.alerts.storage.outbox import Delivery
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.settings.channels import (
    AlertmanagerChannel,
    AnyChannel,
    AppriseChannel,
    CommandChannel,
    EmailChannel,
    PagerDutyChannel,
    PauseChannel,
    SlackChannel,
    WebhookChannel,
)

if TYPE_CHECKING:
    from hopwatch.alerts.channels.delivery_pause import DeliveryBrokers

_log = structlog.get_logger("hopwatch")


def open_channels(
    settings: Mapping[str, AnyChannel],
    clock: Clock | None = None,
    installation: str = "",
    brokers: DeliveryBrokers | None = None,
) -> Routing:
    """Open all channels that are enabled; no receiver is contacted yet.

    ``installation`` distinguishes this Hopwatch from others at the same receivers; empty if it is the only one.
    ``brokers`` keep the pauses of deliveries, for channels that pause one.

    Raises:
        ConfigurationError: a file that holds a secret cannot be read any more.
    """
    names = [name for name, channel in settings.items() if channel.enabled]
    fallbacks = {name: after for name in names if (after := _find_fallback(settings, name))}
    channels = {
        name: GuardedChannel(name, _open_channel(name, settings[name], clock, brokers), installation) for name in names
    }
    return Routing(channels, build_routes(settings), fallbacks)


def open_webhook(name: str, settings: AnyChannel, clock: Clock | None = None) -> Webhook:
    """Open a channel that is a webhook, to post something else to it than notifications.

    Raises:
        ConfigurationError: a file that holds a secret cannot be read any more.
    """
    channel = _open_channel(name, settings, clock)
    assert isinstance(channel, Webhook)  # noqa: S101 - the settings are checked
    return channel


def build_routes(settings: Mapping[str, AnyChannel]) -> Routes:
    """Build the function that routes notifications to channels, from the settings alone."""
    enabled = {name: channel for name, channel in settings.items() if channel.enabled}

    def route(notification: Notification) -> list[str]:
        return [name for name, channel in enabled.items() if _is_routed(channel, notification)]

    return route


@dataclass(frozen=True, slots=True)
class GuardedChannel:
    """Wrapper of a channel that never raises."""

    name: str
    channel: Channel
    installation: str = ""

    def send(self, delivery: Delivery, now_us: int) -> Outcome:
        """Send one notification; an error of our own becomes a failure, which is logged and tried again."""
        try:
            return self.channel.send(qualify_delivery(delivery, self.installation), now_us)
        except Exception as error:  # noqa: BLE001 - the promise; the text of a stranger's error may hold a secret
            _log.error("a channel is at fault", channel=self.name, error=type(error).__name__)
            return Failure(f"a fault of Hopwatch's own in the channel {self.name}: {type(error).__name__}")

    def close(self) -> None:
        """Close the connections."""
        try:
            self.channel.close()
        except Exception as error:  # noqa: BLE001 - as above
            _log.error("a channel does not close", channel=self.name, error=type(error).__name__)


def qualify_delivery(delivery: Delivery, installation: str) -> Delivery:
    """Add the installation to key and labels, as receivers may know the same key from another Hopwatch."""
    if not installation:
        return delivery
    notification = delivery.notification
    labels = {**notification.labels, "installation": installation}
    return replace(
        delivery, notification=replace(notification, key=qualify_key(notification.key, installation), labels=labels)
    )


def _is_routed(channel: AnyChannel, notification: Notification) -> bool:
    if notification.kind is AlertKind.HEARTBEAT:
        return channel.heartbeats
    # A storm or a problem of the monitor itself has no stream, and goes to the channels of any stream.
    stream = notification.labels.get("stream", "")
    is_of_stream = not channel.streams or not stream or stream in channel.streams
    is_of_rule = not channel.rules or notification.rule in channel.rules
    return notification.severity in channel.severities and is_of_stream and is_of_rule


def _find_fallback(settings: Mapping[str, AnyChannel], name: str) -> str:
    """Return the fallback of a channel; for a fallback that is disabled, the next one."""
    after = settings[name].fallback
    while after and not settings[after].enabled:
        after = settings[after].fallback
    return after


def _open_channel(
    name: str, settings: AnyChannel, clock: Clock | None, brokers: DeliveryBrokers | None = None
) -> Channel:
    try:
        return _build_channel(name, settings, clock, brokers)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"[alerts.channels.{name}] cannot be opened: {error}") from None


def _build_channel(  # noqa: PLR0911 - one a kind
    name: str, settings: AnyChannel, clock: Clock | None, brokers: DeliveryBrokers | None
) -> Channel:
    match settings:
        case AlertmanagerChannel():
            return Alertmanager(name, settings, clock)
        case PagerDutyChannel():
            return PagerDuty(settings, clock)
        case SlackChannel():
            return Slack(name, settings, clock)
        case WebhookChannel():
            return Webhook(settings, clock)
        case EmailChannel():
            return Mail(name, settings, clock)
        case CommandChannel():
            return Command(name, settings)
        case PauseChannel():
            from hopwatch.alerts.channels.delivery_pause import DeliveryPause  # noqa: PLC0415 - a client of Kafka

            assert brokers is not None  # noqa: S101 - the settings are checked: there is such a delivery
            return DeliveryPause(name, settings, brokers)
        case AppriseChannel():
            # Apprise takes longer to import than all others, and most configurations do not use it.
            from hopwatch.alerts.channels.apprise_channel import Apprise  # noqa: PLC0415

            return Apprise(name, settings)
