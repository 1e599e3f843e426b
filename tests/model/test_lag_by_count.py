"""Lags of nodes that only count, computed by hand: of each case the model and the product say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.lag import Quantiles, quantiles
from tests.model.spool_writer import SpoolWriter
from tests.support.counted_minutes import HORIZON_S, counted, judged, packet, part, tells

CHAIN = {"path": "a -> n -> b", "stamps": {"n": "count"}}
Case = Callable[[SpoolWriter], None]


def _nothing_told(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 2))


def _in_alone(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 4, lags_us=[-2, 0, 5, 9]))


def _out_alone(hand: SpoolWriter) -> None:
    counted(hand, part("OUT", 2, lags_us=[3, 7]), part("FILTERED", 1, lags_us=[1]), part("DEFERRED", 1, lags_us=[8]))


def _both(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 3, lags_us=[1, 2, 3]), part("OUT", 2, lags_us=[11, 12]), part("REJECTED", 1, lags_us=[4]))


def _told_of_what_left_alone(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 3), part("OUT", 3, lags_us=[11, 12, 13]))


def _told_of_some(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 5, lags_us=[1, 2]))
    counted(hand, part("IN", 9), probe="q")


def _parts_that_come_late_twice_and_in_another_order(hand: SpoolWriter) -> None:
    hand.say("n", 2, 200, other=packet(part("IN", 1, lags_us=[30])))
    hand.say("n", 1, 100, other=packet(part("IN", 2)))
    hand.say("n", 0, 30, other=packet(part("IN", 2, lags_us=[10, 20])))
    hand.say("n", 1, 205, other=packet(part("IN", 2, lags_us=[99, 99])))
    hand.say("n", 2, 206, other=packet(part("IN", 2, lags_us=[98, 98])))
    hand.say("n", 3, HORIZON_S, minute=3)


def _later_than_a_window_is_amended(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 1, lags_us=[10]))
    hand.say("n", 2, 5_000, other=packet(part("IN", 1, lags_us=[99]), probe="p"))


TOLD: dict[str, tuple[Case, list[int], list[int]]] = {
    "nothing": (_nothing_told, [], []),
    "one side": (_in_alone, [-2, 0, 5, 9], [-2, 0, 5, 9]),
    "the other side": (_out_alone, [1, 3, 7], [3, 7]),
    "both sides": (_both, [1, 2, 3], [11, 12]),
    "one side of two": (_told_of_what_left_alone, [], [11, 12, 13]),
    "some": (_told_of_some, [1, 2], [1, 2]),
    "parts": (_parts_that_come_late_twice_and_in_another_order, [10, 20, 30], [10, 20, 30]),
    "too late": (_later_than_a_window_is_amended, [10], [10]),
}


@pytest.mark.parametrize(("case", "came", "left"), TOLD.values(), ids=TOLD)
def test_lags_are_those_of_the_messages_that_told_one(
    case: Case, came: list[int], left: list[int], tmp_path: Path
) -> None:
    """Small ones to the µs, by the side that they were counted at; none is null, and never 0."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    tells(hand, "a", 1, 2, 3)
    tells(hand, "b", 1, 2, 3)
    case(hand)
    window = judged(hand, tmp_path)
    (found,) = window["counts"]
    assert (found["lag_in_us"], found["lag_out_us"]) == (quantiles(came), quantiles(left))
    assert window["lag_us"]["count"] == 3


def test_greater_lags_are_rounded_to_the_middle_of_their_bucket(tmp_path: Path) -> None:
    """Within 1/256 of each; the least and the greatest stay exact."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    lags_us = [1_000_000 + 1_000 * number for number in range(100)]
    counted(hand, part("IN", 100, lags_us=lags_us))
    found: Quantiles = judged(hand, tmp_path)["counts"][0]["lag_in_us"]
    exact = quantiles(lags_us)
    assert exact is not None
    assert (found["count"], found["min"], found["max"]) == (100, 1_000_000, 1_099_000)
    assert found["p50"] != exact["p50"]
    assert all(abs(found[name] - exact[name]) * 256 <= exact[name] for name in ("p50", "p95", "p99"))
