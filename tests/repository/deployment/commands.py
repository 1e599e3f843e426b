"""Command lines: the programs that they call, and what the real program says of those that call ``hopwatch``."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from itertools import pairwise
from typing import Final

import typer.main

from hopwatch.cli.commands import build_application

PROGRAM: Final = "hopwatch"
_SHELLS: Final = ("sh", "-c")
_BETWEEN: Final = frozenset({"||", "&&", "|", ";", "&"})


def simple(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that a command line is made of, each as its words; a shell's script is taken apart."""
    if tuple(words[:2]) == _SHELLS:
        yield [words[0]]
        yield from of_script(words[2])
    else:
        yield list(words)


def of_script(script: str) -> Iterator[list[str]]:
    """Yield the commands that a line of shell is made of."""
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    for word in lexer:
        if word not in _BETWEEN:
            command.append(word)
            continue
        yield command
        command = []
    yield command


def of_healthcheck(test: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands of a healthcheck of Compose's."""
    if test[0] == "CMD-SHELL":
        yield from of_script(test[1])
    else:
        yield list(test[1:])


@cache
def refusal(*arguments: str) -> str:
    """Return what the program says against these arguments, nothing if it takes them; no command is run."""
    command = typer.main.get_command(build_application(arguments))
    _put_to_sleep(command)
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        try:
            command(list(arguments), prog_name=PROGRAM)
        except SystemExit as end:
            if end.code:
                errors = [line for line in said.getvalue().splitlines() if line.startswith("Error: ")]
                return errors[0] if errors else "Error: no command is named"
    return ""


def option(words: Sequence[str], name: str) -> str | None:
    """Return the value of an option of a command line, none where it is not given."""
    given = [value for at, value in pairwise(words) if at == name]
    joined = [word.partition("=")[2] for word in words if word.startswith(f"{name}=")]
    return next(iter((*given, *joined)), None)


def _put_to_sleep(command: object) -> None:
    """Let a command and those below it do nothing when they are called."""
    for below in getattr(command, "commands", {}).values():
        _put_to_sleep(below)
    command.callback = _nothing  # type: ignore[attr-defined]


def _nothing(**_: object) -> None:
    """Stand for what a command does."""
