"""Tests of where and how a command speaks."""

from __future__ import annotations

import contextlib
import io
import json
import sys

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from hopwatch.cli import console


def test_data_goes_to_stdout_and_words_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the data alone."""
    console.stdout().print("data")
    console.stderr().print("words")
    assert capsys.readouterr() == ("data\n", "words\n")


@pytest.mark.parametrize("text", ["[bold red]x[/]", ":smile:", "'; DROP TABLE windows", "x" * 999, "größe"])
def test_names_are_printed_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Markup, emoji codes and long names in data mean nothing, and nothing is folded in a pipe."""
    console.stdout().print(text)
    assert capsys.readouterr().out == text + "\n"


@given(st.text(), st.booleans())
def test_no_text_steers_a_terminal(text: str, is_terminal: bool) -> None:  # noqa: FBT001 - drawn
    """As a line, with a style, in the title, the head and the cells of a table: what cannot be printed is an escape."""
    out = io.StringIO()
    shown = console.PlainConsole(file=out, force_terminal=is_terminal, color_system=None, width=80, markup=False)
    table = Table(text, title=text)
    table.add_row(text)
    for one in (text, Text(text, style="red"), table):
        shown.print(one)
    assert [char for char in out.getvalue() if not char.isprintable() and char != "\n"] == []


def test_a_string_is_one_line_and_a_name_cannot_begin_another(capsys: pytest.CaptureFixture[str]) -> None:
    """In a cell of a table too, whose columns are as wide as what is shown."""
    table = Table("node", "loss", box=None)
    table.add_row("a\nb", "1")
    table.add_row("\x1b[2J", "2")
    console.stdout().print("reason: x\nreason: y")
    console.stdout().print(table)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [r"reason: x\nreason: y", "node loss", r"a\nb 1", r"\x1b[2J 2"]


def test_a_text_for_a_file_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else that cannot be printed."""
    console.emit_text("a\n  b\x1b\n")
    assert capsys.readouterr().out == "a\n  b\\x1b\n"


def test_bytes_are_exact_for_a_program_and_a_text_on_a_terminal(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes are exact in a pipe; on a terminal, those that are no UTF-8 are shown as escapes."""
    console.emit_bytes(b"\x1b[2J\xff\n")
    assert capfdbinary.readouterr().out == b"\x1b[2J\xff\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    console.emit_bytes(b"\x1b[2J\xff")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == rb"\x1b[2J\xff" + b"\n"


def test_each_text_of_a_log_is_one_line() -> None:
    """Of the event and of what is said with it; other values stay."""
    told = console.escape_log(None, "warning", {"event": "a\nb", "why": "\x1b[2J", "count": 3})
    assert told == {"event": r"a\nb", "why": r"\x1b[2J", "count": 3}


def test_a_log_goes_to_stderr_and_steers_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Controls of eight bits neither, as a header of HTTP may bring them; asked for twice it is escaped once."""
    before = structlog.get_config()
    try:
        console.configure_log()
        console.configure_log()
        structlog.get_logger().warning("refused", origin="a\x9b2Jb\\")
        assert structlog.get_config()["processors"].count(console.escape_log) == 1
    finally:
        structlog.configure(**before)
    out, err = capsys.readouterr()
    assert out == ""
    assert r"\x9b2J" in err
    assert "\x9b" not in err


@given(st.recursive(st.none() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one), max_leaves=5))
def test_json_says_what_it_was_given_without_controls(value: object) -> None:
    """DEL, controls of eight bits, turned letters and what no encoding has are escapes of JSON's."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        console.emit_json(value)
    assert json.loads(out.getvalue()) == value
    assert [char for char in out.getvalue() if not char.isprintable() and char != "\n"] == []


def test_json_is_one_value_with_a_line_end(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON is one value with a line end, and letters of all alphabets stay as they are."""
    console.emit_json({"node": "größe", "ratio": None})
    out = capsys.readouterr().out
    assert json.loads(out) == {"node": "größe", "ratio": None}
    assert "größe" in out
    assert out.endswith("}\n")


def test_json_knows_no_nan() -> None:
    """A number that JSON cannot say is a fault, not a surprise for the reader."""
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        console.emit_json({"ratio": float("nan")})
