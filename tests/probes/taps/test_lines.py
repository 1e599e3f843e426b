"""Tests of lines: whole, bounded, and the same however the bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.lines import LineCutter

MOST_BYTES = 8
TEXT = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b" ", b"x" * 9])).map(b"".join)


def cut(text: bytes, places: list[int]) -> tuple[list[bytes], int]:
    """Return the lines of a text that is fed in parts, and how many were too long."""
    cutter, lines, start = LineCutter(MOST_BYTES), [], 0
    for end in [*sorted(place % (len(text) + 1) for place in places), len(text)]:
        lines += cutter.feed(text[start:end])
        start = end
        assert cutter.waiting_bytes == len(text[:end]) - (text[:end].rfind(b"\n") + 1)
    return lines + cutter.end(), cutter.oversized


@given(TEXT, st.lists(st.integers(0, 1_000)))
def test_lines_are_the_same_however_the_bytes_are_cut(text: bytes, places: list[int]) -> None:
    """Lines that are not blank and fit are there in order; those that do not fit are counted."""
    lines = text.split(b"\n")
    fitting = [line for line in lines if line and not line.isspace() and len(line) <= MOST_BYTES]
    assert cut(text, places) == (fitting, sum(len(line) > MOST_BYTES for line in lines))


def test_a_line_without_its_newline_waits() -> None:
    """A line without its newline is kept until the newline comes."""
    cutter = LineCutter()
    assert cutter.feed(b"one\ntw") == [b"one"]
    assert cutter.waiting_bytes == 2
    assert cutter.feed(b"o\n") == [b"two"]


def test_a_line_without_end_takes_no_memory() -> None:
    """A line that is too long is dropped while it comes, and counted once at its end."""
    cutter = LineCutter(MOST_BYTES)
    for _ in range(100):
        assert cutter.feed(b"x" * 100) == []
        assert sum(map(len, cutter._parts)) <= MOST_BYTES
    assert cutter.oversized == 0
    assert cutter.feed(b"x\nnext\n") == [b"next"]
    assert cutter.oversized == 1
