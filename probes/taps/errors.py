"""What ends a tap, beside its own end: two errors, for what was asked and for what it stands on."""

from __future__ import annotations


class TapError(Exception):
    """The root; never raised itself."""


class TapUsageError(TapError):
    """What was asked for cannot be."""


class TapSourceError(TapError):
    """What the tap stands on is not there or does not work: a file, a broker, a port."""
