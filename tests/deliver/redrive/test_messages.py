"""Tests of the header that counts how often a message was sent again."""

from __future__ import annotations

import pytest

from hopwatch.deliver.redrive.messages import (
    MAX_REDRIVES,
    REDRIVEN_HEADER,
    build_redriven_headers,
    read_redrives,
)


@pytest.mark.parametrize(
    ("value", "redrives"),
    [
        (b"1", 1),
        ("2", 2),
        (b"3", 3),
        (b"9", 3),
        (b"", 3),
        (b"-1", 3),
        (b"1.0", 3),
        ("\u0661", 3),
        (b"\xff", 3),
        (None, 3),
    ],
)
def test_a_count_that_cannot_be_read_is_the_most(value: bytes | str, redrives: int) -> None:
    """Nothing is known of such a message, and it may go round."""
    assert MAX_REDRIVES == 3
    assert read_redrives([("a", b"7"), (REDRIVEN_HEADER, value)]) == redrives


def test_a_message_without_the_header_was_never_sent_again() -> None:
    """Other headers say nothing of it; of two the last counts, as it was appended last."""
    assert read_redrives([("a", b"7")]) == 0
    assert read_redrives([(REDRIVEN_HEADER, b"1"), (REDRIVEN_HEADER, b"2")]) == 2


def test_the_count_takes_the_place_of_an_earlier_one() -> None:
    """All other headers stay, in their order, those that repeat too."""
    own: list[tuple[str, str | bytes]] = [("a", b"1"), (REDRIVEN_HEADER, b"1"), ("b", b"\xff"), ("a", b"2")]
    assert build_redriven_headers(own, 2) == [("a", b"1"), ("b", b"\xff"), ("a", b"2"), (REDRIVEN_HEADER, "2")]
