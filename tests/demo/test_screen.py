"""Tests of the screen: lines when piped, one table that fills in on a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from hopwatch.demo.comparison_line import ComparisonLine
from hopwatch.demo.screen import PLAIN_STATUS_EVERY_S, Screen
from tests.demo.hand_clock import HandClock
from tests.demo.report_window import window


def screen(*, is_terminal: bool) -> tuple[Screen, StringIO, HandClock]:
    """Return a screen, what is written to it, and its clock."""
    file, clock = StringIO(), HandClock()
    console = Console(file=file, force_terminal=is_terminal, width=200, color_system=None)
    return Screen(console, now_s=clock), file, clock


def test_when_piped_a_status_comes_now_and_then() -> None:
    """The first status is written at once, the next only after a while, an empty one never."""
    piped, file, clock = screen(is_terminal=False)
    piped.show("", [])
    for status in ("first", "too soon"):
        piped.show(status, [])
    clock.s = PLAIN_STATUS_EVERY_S
    piped.show("next", [])
    assert file.getvalue().splitlines() == ["first", "next"]


def test_when_piped_a_window_is_written_once_it_is_final_and_again_when_amended() -> None:
    """Headings come first and once; an open window is not written, a final one once, a changed one again."""
    piped, file, _ = screen(is_terminal=False)
    amended = window(status="AMENDED", delivered=1199, lost=1)
    for windows in ([window(status="OPEN")], [window()], [window()], [amended]):
        piped.show("", windows)
    lines = [line.split() for line in file.getvalue().splitlines()]
    assert [line[:3] for line in lines] == [
        ["window", "status", "verdict"],
        ["03:04", "FINAL", "LOSSY"],
        ["03:04", "AMENDED", "LOSSY"],
    ]


def test_on_a_terminal_the_table_fills_in() -> None:
    """Status and windows are drawn together; what is said stays; at the end what was live is gone."""
    live, file, _ = screen(is_terminal=True)
    with live:
        live.show("pipeline: 1 msg/s", [])
        live.print_line("norm is killed")
        live.show("pipeline: 2 msg/s", [window(status="OPEN")])
    text = file.getvalue()
    for part in ("pipeline: 1 msg/s", "norm is killed", "pipeline: 2 msg/s", "03:04", "OPEN"):
        assert part in text


def test_the_end_is_the_table_and_the_comparison() -> None:
    """Both are written, on a terminal and when piped."""
    for is_terminal in (True, False):
        shown, file, _ = screen(is_terminal=is_terminal)
        shown.conclude([window()], [ComparisonLine("messages", "", "1,200", "=", "1,200", holds=True)])
        text = file.getvalue()
        assert text.index("LOSSY") < text.index("injected against measured") < text.index("messages")


def test_nothing_to_compare_is_no_comparison() -> None:
    """Without the truth no comparison is printed."""
    shown, file, _ = screen(is_terminal=False)
    shown.conclude([window()], [])
    assert "injected" not in file.getvalue()
