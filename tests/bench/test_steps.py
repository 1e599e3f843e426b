"""Tests of progress: a line a step in a pipe, a spinner on a terminal."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.console import Console

from bench.steps import Steps


def shown(*, is_terminal: bool, error: type[Exception] | None = None) -> str:
    """Return what two steps write; an error comes in the second."""
    console = Console(file=StringIO(), force_terminal=is_terminal, width=80)
    with Steps(console) as steps:
        steps.tell("making")
        steps.tell("measuring")
        if error is not None:
            raise error
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_pipe_gets_a_line_a_step() -> None:
    """Each with the seconds since the start, and nothing that moves."""
    assert re.fullmatch(r" +\d+ s  making\n +\d+ s  measuring\n", shown(is_terminal=False))


def test_a_terminal_gets_all_steps_with_their_time() -> None:
    """The last picture shows both steps."""
    last = shown(is_terminal=True).rpartition("making")[2]
    assert "measuring" in last
    assert re.search(r"\d:\d\d:\d\d", last)


def test_an_error_passes() -> None:
    """An error in a step is raised on."""
    with pytest.raises(KeyError):
        shown(is_terminal=True, error=KeyError)
