"""Ends of a node's two links: their description for the node's process, which opens them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from hopwatch.demo.link import LinkInlet, LinkOutlet
from hopwatch.demo.links.sockets import SocketInlet, SocketOutlet
from hopwatch.demo.links.topics import TopicInlet, TopicOutlet

LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class SocketEnds:
    """Loopback sockets."""

    listen_fd: int
    """A socket that the parent listens on, so that a killed node comes back to the same address."""
    next_port: int
    """The port of the next node; 0 for the last one."""
    events: str = ""
    """The gate's spool, which messages come from instead; empty where they do not."""
    is_reliable: ClassVar[bool] = False
    """Not reliable: messages that a killed node held are lost."""

    @property
    def is_gated(self) -> bool:
        """Return whether messages come from the gate."""
        return bool(self.events)

    def inlet(self) -> LinkInlet:
        """Return the end that messages come from."""
        if self.events:
            from hopwatch.demo.links.gate_spool_inlet import GateSpoolInlet  # noqa: PLC0415 - needs the gate's packages

            return GateSpoolInlet(Path(self.events))
        return SocketInlet(socket.socket(fileno=self.listen_fd))

    def outlet(self) -> LinkOutlet:
        """Return the end that messages go to."""
        return SocketOutlet((LOOPBACK, self.next_port))


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """Kafka topics."""

    brokers: str
    inlet_topic: str
    """Topic that this node reads; empty for the first one."""
    outlet_topic: str
    """Topic that this node writes; empty for the last one."""
    is_gated: bool = False
    """True if the inlet is the gate's outlet."""
    is_reliable: ClassVar[bool] = True
    """Reliable: messages that a killed node held come again."""

    def inlet(self) -> LinkInlet:
        """Return the end that messages come from.

        Raises:
            LinkError: no broker says how far this node has come.
        """
        if self.is_gated:
            from hopwatch.demo.links.gate_topic_inlet import GateTopicInlet  # noqa: PLC0415 - as above

            return GateTopicInlet.open(self.brokers, self.inlet_topic)
        return TopicInlet.open(self.brokers, self.inlet_topic)

    def outlet(self) -> LinkOutlet:
        """Return the end that messages go to."""
        return TopicOutlet.open(self.brokers, self.outlet_topic)


@dataclass(frozen=True, slots=True)
class TransactionalEnds:
    """Kafka topics of a node of the service, which reads one in a group and writes the others in transactions."""

    brokers: str
    inlet_topic: str
    outlet_topics: dict[str, str]
    """Topic of each next node."""
    is_gated: bool = False
    """True if the inlet is the gate's outlet."""


Ends = SocketEnds | TopicEnds


def parse_ends(fields: dict[str, Any]) -> Ends:
    """Return the ends that ``dataclasses.asdict`` made these fields of."""
    return TopicEnds(**fields) if "brokers" in fields else SocketEnds(**fields)
