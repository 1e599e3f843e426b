"""Errors of taps, imports and their clients as errors with an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hopwatch.monitor.errors import ConfigurationError, HopwatchError
from hopwatch.probes.taps.errors import TapSourceError, TapUsageError


@contextmanager
def translate_tap_errors(down: type[HopwatchError], *others: type[Exception]) -> Iterator[None]:
    """Raise what a user can set right as a :class:`ConfigurationError`, and what may pass as ``down``.

    ``others`` are more errors that may pass.
    """
    passing: tuple[type[Exception], ...] = (TapSourceError, *others)
    try:
        yield
    except TapUsageError as error:
        raise ConfigurationError(str(error)) from None
    except passing as error:
        raise down(str(error)) from None
