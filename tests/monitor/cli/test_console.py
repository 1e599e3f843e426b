"""Tests of where and how a command speaks."""

from __future__ import annotations

import json

import pytest
from rich.table import Table

from monitor.cli import console


def test_data_goes_to_stdout_and_words_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe gets the data alone."""
    console.data().print("data")
    console.words().print("words")
    assert capsys.readouterr() == ("data\n", "words\n")


@pytest.mark.parametrize(
    "text", ["[bold red]x[/]", ":smile:", "'; DROP TABLE windows", "x" * 999, "größe\tof\n2 lines"]
)
def test_names_are_printed_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Markup, emoji codes and long names in data mean nothing, and nothing is folded in a pipe."""
    console.data().print(text)
    assert capsys.readouterr().out == text.expandtabs() + "\n"


@pytest.mark.parametrize("text", ["\x1b[2J", "\r", "\x9b2J", "\x7f", "\x00", "\u202e", "\u2029", "\u2066"])
def test_no_text_of_a_stranger_commands_the_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As a line or in a table it is shown as JSON writes it: it clears, forges and turns around nothing."""
    table = Table("name")
    table.add_row(text)
    console.data().print(text)
    console.data().print(table)
    out = capsys.readouterr().out
    assert text[0] not in out
    assert out.count(f"\\u{ord(text[0]):04x}{text[1:]}") == 2


def test_json_is_one_value_with_a_line_end(capsys: pytest.CaptureFixture[str]) -> None:
    """What is written can be read back, letters of all alphabets as they are."""
    console.emit_json({"node": "größe", "ratio": None})
    out = capsys.readouterr().out
    assert json.loads(out) == {"node": "größe", "ratio": None}
    assert "größe" in out
    assert out.endswith("}\n")


def test_json_knows_no_nan() -> None:
    """A number that JSON cannot say is a fault, not a surprise for the reader."""
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        console.emit_json({"ratio": float("nan")})
