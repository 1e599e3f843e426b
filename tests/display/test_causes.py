"""Tests of likely causes of loss and of lag in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from hopwatch.display.causes import describe_causes, describe_lag_causes, summarize_causes, summarize_lag_causes
from hopwatch.monitor.results import LabelCounts, LabelValueKind, LagCause, LossCause

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


def test_a_cause_of_lag_says_its_share_and_how_the_others_fare() -> None:
    """Of the slowest departures, and of all with the value; without a cause there is nothing to say."""
    host = LagCause(1, "host", LabelValueKind.VALUE, "h\n", 95, 300, 5, 1_700)
    zone = replace(host, label="zone", value="z", is_new=True)
    further = replace(host, rank=2, kind=LabelValueKind.NONE, value="")
    share = "with 95.0% of 100 slowest departures; of its departures 31.7% are so slow, of all others 0.29%"
    assert describe_lag_causes("norm", (host, zone, further)) == [
        f"likely cause of lag at norm: host h\\n · zone z (new), {share}",
        f"further cause of lag at norm: host (no value), {share}",
    ]
    assert summarize_lag_causes((host, zone, further)) == (
        "95.0% of 100 slowest departures have host h\\n · zone z (new)"
    )
    assert (describe_lag_causes("norm", ()), summarize_lag_causes(())) == ([], "")


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
