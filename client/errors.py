"""Errors of the client.

::

    ClientError
    ├── ClientClosedError  the client is closed, or belongs to the parent of this process
    ├── QueueFullError     no room for the event within the wait that the caller allowed
    └── ClientSpoolError   the spool cannot be written or read, or another client has it

A ``ValueError`` says that an argument is wrong.
"""

from __future__ import annotations


class ClientError(Exception):
    """Base of the client's errors: the event was not accepted."""


class ClientClosedError(ClientError):
    """The client takes no events any more."""


class QueueFullError(ClientError):
    """No room for the event."""


class ClientSpoolError(ClientError):
    """The spool cannot be used."""
