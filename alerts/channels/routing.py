"""The ways to people that a configuration opens: channels by name, who is told by which, and which stands in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hopwatch.alerts.channels.channel import Channel
from hopwatch.alerts.events import Notification

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings


Routes = Callable[[Notification], Sequence[str]]
"""Which channels a notification goes through, by their names."""


def route_to_none(notification: Notification) -> Sequence[str]:
    """Return no channel: what is told is kept in the history alone."""
    del notification
    return ()


@dataclass(frozen=True, slots=True)
class Routing:
    """Channels by name, the routes of what is told, and of each channel that has one its fallback's name."""

    channels: Mapping[str, Channel] = field(default_factory=dict)
    routes: Routes = route_to_none
    fallbacks: Mapping[str, str] = field(default_factory=dict)

    def close(self) -> None:
        """Let go of all channels."""
        for channel in self.channels.values():
            channel.close()


def open_routing(settings: Settings) -> Routing:
    """Return the ways that the settings ask for; nothing is asked of the other sides yet.

    Raises:
        ConfigurationError: a file that holds a secret cannot be read any more.
    """
    # Whoever reads of a channel only waits for none of their libraries.
    from hopwatch.alerts.channels import factory as channels  # noqa: PLC0415

    return channels.open_channels(settings.alerts.channels, installation=settings.alerts.installation)
