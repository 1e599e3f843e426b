"""Argument of commands that start another program, behind ``--``."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from hopwatch.monitor.errors import ConfigurationError


def check_program(command: Sequence[str]) -> None:
    """Check that the program of a command can be found.

    Raises:
        ConfigurationError: it cannot.
    """
    if shutil.which(command[0]) is None:
        advice = "there is no such program: name one that is there and may be run, after --"
        raise ConfigurationError(f"{command[0]!r:.200} cannot be started: {advice}")
