"""Lock of a store against other monitors."""

from __future__ import annotations

from typing import Protocol


class StoreLock(Protocol):
    """An acquired lock; it is valid inside the block that acquired it."""

    def renew(self) -> None:
        """Check that the lock is still held, and acquire it again if the server released it.

        Raises:
            StoreTakenError: another monitor has acquired it meanwhile.
            StoreError: its file was deleted or replaced.
        """

    def check_place(self) -> None:
        """Check that the file of the store was not moved or replaced; does nothing for a server.

        Raises:
            StoreError: its file was deleted or replaced.
        """


class MemoryLock:
    """Lock of a database in memory, which no other process can open."""

    def renew(self) -> None:
        """Do nothing: the lock cannot be lost."""

    def check_place(self) -> None:
        """Do nothing: there is no file."""
