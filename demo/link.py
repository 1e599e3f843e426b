"""A link between two nodes: its two ends, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from hopwatch.monitor.errors import DependencyError, HopwatchError


class LinkError(DependencyError):
    """A link does not carry messages any more, or carries something else."""


RESTART_EXIT_CODE: Final = 75
"""Exit code of a process that is to be started again: the failure is temporary (EX_TEMPFAIL of sysexits.h)."""


class LinkInterruptedError(HopwatchError):
    """A link fails now; a process that starts anew goes on where this one was."""

    exit_code = RESTART_EXIT_CODE


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
