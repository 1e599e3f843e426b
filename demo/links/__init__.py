"""The links between the nodes, one seam with two kinds behind it.

    sockets.py    loopback TCP: a message arrives at most once, a killed node loses what it held
    topics.py     Kafka: a message arrives at least once, a killed node loses nothing and repeats some

``laid.py`` keeps the links of a run, and tells each process of its own two by ``ends.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hopwatch.monitor.errors import DependencyError


class LinkError(DependencyError):
    """A link does not carry messages any more, or carries something else."""


class LinkOutlet(Protocol):
    """The sending end."""

    def send(self, payload: bytes, then: Callable[[], None]) -> None:
        """Take a message, and call ``then`` once it has left: now, or from a later call of this outlet."""

    def settle(self) -> None:
        """Wait until all that was sent has left."""

    def close(self) -> None:
        """Settle and hang up."""


class LinkInlet(Protocol):
    """The receiving end."""

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return what has come; waits at most so long for the first."""

    def done(self, count: int) -> None:
        """Take note that of all that was ever received here the first ``count`` need not come again."""

    def has_ended(self) -> bool:
        """Return whether nothing more will come, once the node before has ended."""

    def close(self) -> None:
        """Hang up."""
