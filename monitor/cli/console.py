"""Where a command speaks: data on stdout, words on stderr; colour and shape on a terminal, plain text when piped."""

from __future__ import annotations

import json
import sys
from typing import Final

from rich.console import Console

PIPED_WIDTH: Final = 1_000
"""Characters a line when nobody looks: no table is folded for a program that reads it."""


def data() -> Console:
    """Return the console for what was asked for; it takes names and ids as they are, ``[bold]`` too."""
    return _console(to_stderr=False)


def words() -> Console:
    """Return the console for what is said beside the data: progress, advice, errors."""
    return _console(to_stderr=True)


def emit_json(value: object) -> None:
    """Write one JSON value to stdout."""
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _console(*, to_stderr: bool) -> Console:
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(stderr=to_stderr, width=width, markup=False, highlight=False, emoji=False)
