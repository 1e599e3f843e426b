"""Fenced blocks of a page: the files that they show, the commands that they have, and the output below each.

Written here because the kept libraries (pytest-examples, pytest-markdown-docs, sybil) run blocks of Python, and what
pages of this repository show is console sessions first of all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.repository import ROOT

OMITTED: Final = "…"
"""On a line of its own: any lines; within a line: any text."""
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"^# (\S+\.py)\n", re.MULTILINE)
_VARYING: Final = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), lambda found: found[0]),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), lambda _: "MOMENT"),
    (re.compile(r"-?\d[\d,.]* (ns|µs|ms|s|min|h)\b"), lambda _: "SPAN"),
    (re.compile(r"(?<= )[\w.-]*[A-Za-z][\w.]*-\d+(?= )"), lambda _: "INSTANCE"),
)
"""Figures that are never twice the same: moments, spans of time, and probe instances. Ids are read whole."""
_FIGURE: Final = re.compile(r"\d[\d,.:]*")


@dataclass(frozen=True)
class Command:
    """A command line as a page shows it, and what the page says that it prints."""

    line: str
    output: str


def page(name: str) -> str:
    """Return the text of a page, by its path in the repository."""
    return (ROOT / name).read_text("utf-8")


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the text of each fenced block, in order."""
    return [(found[1], found[2]) for found in _BLOCK.finditer(text)]


def of(text: str, language: str) -> list[str]:
    """Return the blocks of one language."""
    return [block for told, block in blocks(text) if told == language]


def files(text: str) -> dict[str, str]:
    """Return the Python files that a page shows, by the names in their first lines."""
    found: dict[str, str] = {}
    for block in of(text, "python"):
        _, *named = _FILE.split(block)
        found |= dict(zip(named[::2], named[1::2], strict=True))
    return found


def commands(text: str) -> list[Command]:
    """Return the commands of all console blocks of a text, in order."""
    found = []
    for block in of(text, "console"):
        _, *parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        found += [Command(line, output) for line, output in zip(parts[::2], parts[1::2], strict=True)]
    return found


def is_printed(shown: str, printed: str, *, has_other_figures: bool = False) -> bool:
    """Return whether a program printed what a page shows, up to blanks and what varies; all figures with a flag."""
    pattern = ""
    for line in _lines(shown, has_other_figures=has_other_figures):
        pattern += "(?:.*\n)*?" if line == OMITTED else re.escape(line).replace(OMITTED, ".*") + "\n"
    text = "".join(f"{line}\n" for line in _lines(printed, has_other_figures=has_other_figures))
    return re.fullmatch(pattern, text) is not None


def _lines(text: str, *, has_other_figures: bool) -> list[str]:
    for form, replacement in _VARYING:
        text = form.sub(replacement, text)
    if has_other_figures:
        text = _FIGURE.sub("N", text)
    text = re.sub("─+", "─", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
