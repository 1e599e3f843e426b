"""Tests of likely causes in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from hopwatch.display.causes import describe_causes, summarize_causes
from hopwatch.monitor.results import LabelCounts, LabelValueKind, LossCause

VERSION: Final = LossCause(1, "version", "norm", LabelValueKind.VALUE, "1.1", 97, 3_000, 3, 30_000, is_new=True)
PARTITION: Final = replace(
    VERSION, label="partition", said_at="router", value="7\n", lost=99, other_lost=1, is_new=False
)
UNNAMED: Final = replace(VERSION, rank=2, kind=LabelValueKind.NONE, value="", lost=100, messages=100, other_lost=0)
ROWS: Final = tuple(
    LabelCounts("host", "norm", LabelValueKind.VALUE, value, 1_000, 0, 0, 50, 0) for value in ("a", "b")
)


def test_a_cause_says_its_share_and_how_the_others_fare() -> None:
    """Values that are one cause share a sentence; a node is named where another one says the label."""
    likely, further = describe_causes("norm", 100, (VERSION, PARTITION, UNNAMED), ROWS)
    assert likely == (
        "likely cause at norm: version 1.1 (new) · partition 7\\n at router, with 97.0% of 100 missing; of its "
        "messages 3.23% are missing, of all others 0.0100%"
    )
    assert further == (
        "further cause at norm: version (no value) (new), with 100% of 100 missing; of its messages 100% are missing, "
        "of all others 0%"
    )
    assert summarize_causes("norm", (VERSION, PARTITION, UNNAMED)) == (
        "97.0% of 100 missing have version 1.1 (new) · partition 7\\n at router"
    )


@pytest.mark.parametrize(
    ("loss", "rows", "expected"),
    [
        (100, ROWS, ["no label explains the 100 missing at norm"]),
        (9, ROWS, []),
        (100, ROWS[:1], []),
        (100, (), []),
    ],
)
def test_that_no_label_explains_it_is_said_where_one_could(
    loss: int, rows: tuple[LabelCounts, ...], expected: list[str]
) -> None:
    """Of ten messages and two values or more."""
    assert describe_causes("norm", loss, (), rows) == expected
    assert summarize_causes("norm", ()) == ""
