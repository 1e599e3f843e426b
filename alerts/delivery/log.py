"""What the courier says in the log: once that something fails, once that it does not any more; saying it never fails.

WARNING is what was not expected and loses nothing, ERROR what a person has to look at.
"""

from __future__ import annotations

import traceback
from contextlib import suppress

import structlog

from hopwatch.monitor.errors import HopwatchError

_log = structlog.get_logger("hopwatch")


def info(words: str, **told: str) -> None:
    """Say that something is well again."""
    # A log that cannot be written, as of a terminal that is gone, holds no page up.
    with suppress(Exception):
        _log.info(words, **told)


def warning(words: str, **told: str) -> None:
    """Say what was not expected and loses nothing."""
    with suppress(Exception):
        _log.warning(words, **told)


def error(words: str, **told: str) -> None:
    """Say what a person has to look at."""
    with suppress(Exception):
        _log.error(words, **told)


def describe_fault(raised: Exception) -> str:
    """Return what went wrong in our own code, and where; the words of an error may hold an address with a secret."""
    place = traceback.extract_tb(raised.__traceback__)[-1]
    return f"a fault of Hopwatch's own: {type(raised).__name__} in {place.name}, line {place.lineno}"


class FailureLog:
    """Says once that something fails, and once that it does not any more."""

    def __init__(self, what: str) -> None:
        """Name what it is."""
        self._what, self._is_failing = what, False

    def fails(self, raised: Exception) -> None:
        """Say it, if it was well before."""
        if not self._is_failing:
            why = str(raised) if isinstance(raised, HopwatchError) else describe_fault(raised)
            warning("alerts wait, nothing is lost", what=self._what, why=why)
        self._is_failing = True

    def works(self) -> None:
        """Say it, if it failed before."""
        if self._is_failing:
            info("alerts are delivered again", what=self._what)
        self._is_failing = False
