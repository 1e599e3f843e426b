"""Receiver at the end of a stream: it notes when each message of the run arrives."""

from __future__ import annotations

from typing import Protocol, Self


class ReceiverError(Exception):
    """The receiver cannot receive: its topic or its address is not to be had."""


class RatingReceiver(Protocol):
    """Receiver, as an asynchronous context."""

    async def __aenter__(self) -> Self:
        """Begin to receive.

        Raises:
            ReceiverError: it cannot.
        """

    async def __aexit__(self, *_: object) -> None:
        """End it."""

    def check(self) -> None:
        """Check that it still receives.

        Raises:
            ReceiverError: it does not.
        """
