"""Receiver at the end of a stream: it notes when each message of the run arrives."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class ReceiverError(Exception):
    """The receiver cannot receive: its topic or its address is not to be had."""


class RatingReceiver(AbstractAsyncContextManager["RatingReceiver"], Protocol):
    """Receiver, as an asynchronous context."""

    def check(self) -> None:
        """Check that it still receives.

        Raises:
            ReceiverError: it does not.
        """
