"""Where a command speaks: data on stdout, words on stderr; colour and shape on a terminal, plain text when piped."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from rich.console import Console
from rich.text import Text

PIPED_WIDTH: Final = 1_000
"""Characters a line when nobody looks: no table is folded for a program that reads it."""

_CONTROLS: Final = (
    *range(0x09),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES: Final = {one: f"\\u{one:04x}" for one in _CONTROLS}
"""Characters that a terminal obeys or that turn text around, tabs and ends of lines aside, and how they are shown."""


class _Escaping(Console):
    """Shows characters that a terminal would obey as JSON writes them: a text may be a stranger's."""

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as the library has them
        return super().render_str(text.translate(_ESCAPES), **how)


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
    return _Escaping(stderr=to_stderr, width=width, markup=False, highlight=False, emoji=False)
