"""Output of commands: data on stdout, messages on stderr; colours on a terminal, plain text when piped.

All output passes here. Names, ids and reasons are untrusted: their control characters are escaped.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from hopwatch.cli.configuration import read_variable
from hopwatch.monitor.texts.escaping import escape_json, escape_line, escape_lines

PIPED_WIDTH: Final = 120
"""Width of a piped table in characters, unless COLUMNS is set; sentences are never folded in a pipe."""


class PlainConsole(Console):
    """Console without markup that escapes control characters.

    A string is one line, in a cell of a table too; a text of several lines is printed line by line, or is a ``Text``.
    """

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as the library has it
        """Render a string as a text of one line; widths are measured by it."""
        return super().render_str(escape_line(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments to write; line ends are the only control characters that texts keep."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_lines(segment.text), segment.style)


def stdout() -> Console:
    """Return the console for data."""
    return _build_console(to_stderr=False)


def stderr() -> Console:
    """Return the console for messages: progress, advice and errors."""
    return _build_console(to_stderr=True)


def emit_json(value: object) -> None:
    """Write a JSON value to stdout; letters of all alphabets stay as they are, control characters are escaped."""
    sys.stdout.write(escape_json(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n")


def emit_json_line(value: object) -> None:
    """Write a JSON value to stdout as one line, at once, as lines that follow each other."""
    sys.stdout.write(escape_json(json.dumps(value, ensure_ascii=False, allow_nan=False)) + "\n")
    sys.stdout.flush()


def emit_text(text: str) -> None:
    """Write a text of several lines to stdout."""
    sys.stdout.write(escape_lines(text))


def emit_bytes(data: bytes) -> None:
    """Write bytes to stdout; to a terminal as text."""
    if sys.stdout.isatty():
        emit_text(data.decode("utf-8", "backslashreplace") + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def configure_log() -> None:
    """Configure logging to stderr, with each text on one line."""
    import structlog  # taps have none

    *before, rendered = (one for one in structlog.get_config()["processors"] if one is not escape_log)
    structlog.configure([*before, escape_log, rendered], logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))


def escape_log(logger: object, method: str, told: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape line ends and control characters in log fields: a processor of structlog."""
    del logger, method
    return {name: escape_line(value) if isinstance(value, str) else value for name, value in told.items()}


def _build_console(*, to_stderr: bool) -> Console:
    stream = sys.stderr if to_stderr else sys.stdout
    is_piped = not stream.isatty()
    width = _read_piped_width() if is_piped else None
    return PlainConsole(stderr=to_stderr, width=width, soft_wrap=is_piped, markup=False, highlight=False, emoji=False)


def _read_piped_width() -> int:
    asked = read_variable("COLUMNS")
    return int(asked) if re.fullmatch("[1-9][0-9]{0,5}", asked) else PIPED_WIDTH
