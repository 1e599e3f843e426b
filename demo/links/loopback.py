"""The loopback sockets of a run, one a node."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from hopwatch.demo.entrance.outlets import SPOOL, GateOutlets
from hopwatch.demo.links.ends import LOOPBACK, SocketEnds
from hopwatch.demo.stream import NODES, next_node


class SocketLinks:
    """One loopback socket a node. They stay with this process, so that a killed node finds its own again."""

    words = observations_url = left_behind = ""

    def __init__(self, gate: GateOutlets | None = None) -> None:
        """Open nothing yet; ``gate`` writes to spools."""
        self.gate = gate
        self._listeners: dict[str, socket.socket] = {}

    def check(self) -> None:
        """Do nothing: a machine has loopback."""

    def __enter__(self) -> Self:
        """Open the sockets."""
        self._listeners = {node: socket.create_server((LOOPBACK, 0)) for node in NODES}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the sockets."""
        for listener in self._listeners.values():
            listener.close()

    def ends(self, node: str) -> SocketEnds:
        """Return the node's own socket, and the port of the next one."""
        following = next_node(node)
        next_port = self._listeners[following].getsockname()[1] if following else 0
        events = self.gate.events if self.gate and node == NODES[0] else ""
        return SocketEnds(self._listeners[node].fileno(), next_port, events.removeprefix(SPOOL))

    def descriptors(self, node: str) -> tuple[int, ...]:
        """Return the node's own socket."""
        return (self._listeners[node].fileno(),)
