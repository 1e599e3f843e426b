"""Notification channels, routes and fallbacks built from the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hopwatch.alerts.channels.channel import Channel
from hopwatch.alerts.events import Notification

if TYPE_CHECKING:
    from hopwatch.alerts.channels.delivery_pause import DeliveryBrokers
    from hopwatch.monitor.settings import Settings


Routes = Callable[[Notification], Sequence[str]]
"""Function from a notification to the names of its channels."""


def route_to_none(notification: Notification) -> Sequence[str]:
    """Return no channel: notifications are kept in the history only."""
    del notification
    return ()


@dataclass(frozen=True, slots=True)
class Routing:
    """Channels by name, the routes of notifications, and the fallbacks by channel."""

    channels: Mapping[str, Channel] = field(default_factory=dict)
    routes: Routes = route_to_none
    fallbacks: Mapping[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Close all channels."""
        for channel in self.channels.values():
            channel.close()


def open_routing(settings: Settings) -> Routing:
    """Open the channels of the settings, with their routes and fallbacks; no receiver is contacted yet.

    Raises:
        ConfigurationError: a file that holds a secret cannot be read any more.
    """
    # The import waits for the libraries of the channels, which other users of this module do not need.
    from hopwatch.alerts.channels import factory as channels  # noqa: PLC0415

    brokers = _find_delivery_brokers(settings) if settings.deliver else None
    said = settings.alerts
    return channels.open_channels(said.channels, installation=said.installation, brokers=brokers)


def _find_delivery_brokers(settings: Settings) -> DeliveryBrokers:
    from hopwatch.alerts.channels.delivery_pause import DeliveryBrokers  # noqa: PLC0415 - a client of Kafka

    by_delivery = {name: said.place.brokers for name, said in settings.deliver.items()}
    return DeliveryBrokers(by_delivery, settings.transport.access)
