"""Errors that end a tap: wrong usage, and a source or sink that fails."""

from __future__ import annotations


class TapError(Exception):
    """Base class of a tap's errors; never raised itself."""


class TapUsageError(TapError):
    """Invalid option or argument of a tap."""


class TapSourceError(TapError):
    """Missing or failing resource of a tap: a file, a broker, a port, a sink."""
