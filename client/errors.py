"""Errors of the client.

::

    ClientError
    ├── ClientClosedError  the client is closed, or belongs to the parent of this process
    ├── QueueFullError     no room for the event within the wait that the caller allowed
    ├── ClientSpoolError   the spool cannot be written or read, or another client has it
    └── ResultsError       the query API is not there, or refuses

A ``ValueError`` says that an argument is wrong.
"""

from __future__ import annotations


class ClientError(Exception):
    """Base of the client's errors: the event was not accepted, or there are no results."""


class ClientClosedError(ClientError):
    """The client takes no events any more."""


class QueueFullError(ClientError):
    """No room for the event."""


class ClientSpoolError(ClientError):
    """The spool cannot be used."""


class ResultsError(ClientError):
    """The query API is not there, or refuses; ``status`` is that of HTTP, 0 without an answer."""

    def __init__(self, status: int, detail: str) -> None:
        """Keep the status beside the text."""
        super().__init__(f"{status}: {detail}" if status else detail)
        self.status = status
