"""Escaping of untrusted text: characters that could control a terminal or hide text become visible escapes."""

from __future__ import annotations

import json
import re
from typing import Final

_BEYOND_ASCII: Final = re.compile(r"[^\n -~]")


def escape_line(text: str) -> str:
    """Return a text on one line: each character that cannot be printed, line ends too, as Python would write it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def escape_lines(text: str) -> str:
    """Return a text of any number of lines, whose line ends stay; all else is as in :func:`escape_line`."""
    return "\n".join(map(escape_line, text.split("\n")))


def escape_json(text: str) -> str:
    """Return a JSON text with the same meaning, in which what cannot be printed is an escape of JSON's."""
    return _BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text)
