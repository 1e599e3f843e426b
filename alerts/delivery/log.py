"""Log of the dispatcher; logging never raises.

WARNING: unexpected, nothing is lost. ERROR: a person has to act.
"""

from __future__ import annotations

import traceback
from contextlib import suppress

import structlog

from hopwatch.monitor.errors import HopwatchError
from hopwatch.probes.once_per_cause import OncePerCause

_log = structlog.get_logger("hopwatch")


def info(words: str, **fields: str) -> None:
    """Log that something works again."""
    # A log that cannot be written, such as that of a closed terminal, must not block a page.
    with suppress(Exception):
        _log.info(words, **fields)


def warning(words: str, **fields: str) -> None:
    """Log something unexpected by which nothing is lost."""
    with suppress(Exception):
        _log.warning(words, **fields)


def error(words: str, **fields: str) -> None:
    """Log something that a person has to act on."""
    with suppress(Exception):
        _log.error(words, **fields)


def describe_fault(raised: Exception) -> str:
    """Describe an error of our own code and its place; its text is left out, as it may hold a secret."""
    place = traceback.extract_tb(raised.__traceback__)[-1]
    return f"a fault of Hopwatch's own: {type(raised).__name__} in {place.name}, line {place.lineno}"


class FailureLog:
    """Logs once that something fails, and once that it works again."""

    def __init__(self, subject: str) -> None:
        """Name what it is."""
        self._subject, self._failing = subject, OncePerCause()

    def log_failure(self, raised: Exception) -> None:
        """Log the failure, if it worked before."""
        if self._failing.is_new():
            why = str(raised) if isinstance(raised, HopwatchError) else describe_fault(raised)
            warning("alerts wait, nothing is lost", what=self._subject, why=why)

    def log_recovery(self) -> None:
        """Log the recovery, if it failed before."""
        if self._failing.rearm():
            info("alerts are delivered again", what=self._subject)
