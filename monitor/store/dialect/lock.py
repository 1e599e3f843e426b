"""What whoever holds a store against other monitors has in hand."""

from __future__ import annotations

from typing import Protocol


class StoreLock(Protocol):
    """The right to write, as long as the block lasts that it was given to."""

    def renew(self) -> None:
        """Make sure that the store is still held, and take it again if the server has let go.

        Raises:
            StoreTakenError: meanwhile another monitor has taken it.
            StoreError: its file was deleted or replaced.
        """

    def check_place(self) -> None:
        """Make sure that what was written is where the store is still looked for; a server is not asked.

        Raises:
            StoreError: its file was deleted or replaced.
        """


class MemoryLock:
    """A hold that only the end of the process can end."""

    def renew(self) -> None:
        """Do nothing: it still holds."""

    def check_place(self) -> None:
        """Do nothing: there is no file that could go."""
