"""Tests of the comparison of a window with the minute as it was injected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from hopwatch.monitor.results import Quantiles, WindowResult
from hopwatch.monitor.selftest.comparison import ProblemKind, SelftestOutcome, compare_minute
from hopwatch.monitor.selftest.minute import InjectedMinute, LagBounds
from tests.support.windows import window

ONE, TWO, THREE = (bytes([number]) * 16 for number in (1, 2, 3))
LAG: Final = Quantiles(20, 1_000, 50_000, 90_000, 95_000, 99_000)
NODE: Final[dict[str, Any]] = {
    "loss": 2, "loss_lower": 2, "loss_upper": 2, "duplicates_in": 1, "lag_in_us": LAG
}  # fmt: skip
INJECTED: Final = InjectedMinute(
    0,
    known=20,
    delivered=15,
    filtered=2,
    rejected=1,
    duplicates={"b": 1},
    lost={"a": [], "b": [ONE, TWO]},
    lags={"b.in": {"p50": LagBounds(40_000, 60_000), "max": LagBounds(99_000, 99_000)}},
)
LISTED: Final = {"b": frozenset({ONE, TWO})}
COUNTS: Final[dict[str, Any]] = {
    "known": 20, "delivered": 15, "filtered": 2, "rejected": 1, "lost": 2, "lost_lower": 2, "lost_upper": 2
}  # fmt: skip


def measured(**changes: Any) -> WindowResult:  # noqa: ANN401 - the fields of a window
    """Return the window as it was injected, but for some fields; ``node`` are those of node b."""
    node = NODE | changes.pop("node", {})
    return replace(window(0, nodes={"b": node}), **(COUNTS | changes))


def test_what_was_measured_as_injected_has_no_problem() -> None:
    """Counts, bounds, ids and lags agree."""
    assert compare_minute(INJECTED, measured(), LISTED) == SelftestOutcome(2, 2, 0, ())


@pytest.mark.parametrize(
    ("result", "listed", "outcome", "problem", "text"),
    [
        (
            measured(),
            {"b": frozenset({ONE})},
            (2, 1, 1),
            ProblemKind.MISSED_LOSS,
            f"1 of 2 messages lost at b are not missing there, such as {TWO.hex()}",
        ),
        (
            measured(),
            {"a": frozenset({ONE}), "b": frozenset({TWO})},
            (2, 2, 1),
            ProblemKind.MISSED_LOSS,
            f"1 of 2 messages lost at b are not missing there, such as {ONE.hex()}",
        ),
        (
            measured(node={"loss": 3, "loss_lower": 3, "loss_upper": 3}),
            {"b": frozenset({ONE, TWO, THREE})},
            (2, 2, 1),
            ProblemKind.FALSE_LOSS,
            "called surely lost at a node, though not lost there: 1",
        ),
        (
            measured(lost=3, lost_lower=3, lost_upper=3),
            LISTED,
            (2, 2, 0),
            ProblemKind.FALSE_LOSS,
            "called surely lost end to end: 3, lost: 2",
        ),
        (
            measured(node={"loss_lower": 0, "loss_upper": None}, reasons=("a hole",)),
            LISTED,
            (2, 2, 0),
            ProblemKind.OPEN_BOUNDS,
            "the loss at b is 0 to ?, and lost were 2 (a hole)",
        ),
        (
            measured(delivered=14),
            LISTED,
            (2, 2, 0),
            ProblemKind.WRONG_COUNT,
            "delivered: injected were 15, measured 14",
        ),
        (
            measured(node={"duplicates_in": 0}),
            LISTED,
            (2, 2, 0),
            ProblemKind.WRONG_COUNT,
            "duplicates at b: injected were 1, measured 0",
        ),
        (
            measured(node={"lag_in_us": replace(LAG, p50=80_001)}),
            LISTED,
            (2, 2, 0),
            ProblemKind.WRONG_LAG,
            "the p50 of the lag in at b is 80.0 ms, and was 40.0 to 60.0 ms",
        ),
        (None, {}, (2, 0, 0), ProblemKind.NOT_JUDGED, "the window is not judged"),
    ],
)
def test_each_difference_is_a_problem(
    result: WindowResult | None,
    listed: dict[str, frozenset[bytes]],
    outcome: tuple[int, int, int],
    problem: ProblemKind,
    text: str,
) -> None:
    """With its kind, and the figures on both sides."""
    found = compare_minute(INJECTED, result, listed)
    assert (found.lost, found.found, found.false) == outcome
    assert (problem, text) in [(one.kind, one.text) for one in found.problems]


def test_open_bounds_are_allowed_where_a_probe_died() -> None:
    """Neither bounds nor counts nor lags are compared then, and a loss may be missing at another node."""
    near = replace(INJECTED, is_exact=False)
    open_node = {"loss": 9, "loss_lower": 0, "loss_upper": None, "lag_in_us": None}
    result = measured(lost=9, lost_lower=0, lost_upper=None, delivered=8, node=open_node)
    assert compare_minute(near, result, {"a": frozenset({ONE, TWO, THREE})}).problems == ()


@pytest.mark.parametrize(
    ("result", "listed", "problem"),
    [
        (measured(), {"b": frozenset({ONE})}, ProblemKind.MISSED_LOSS),
        (measured(node={"loss_lower": 3, "loss_upper": None}), LISTED, ProblemKind.FALSE_LOSS),
    ],
)
def test_false_and_missed_losses_are_problems_also_where_a_probe_died(
    result: WindowResult, listed: dict[str, frozenset[bytes]], problem: ProblemKind
) -> None:
    """No death is a reason to overlook a loss, or to call one sure that is none."""
    found = compare_minute(replace(INJECTED, is_exact=False), result, listed)
    assert problem in {one.kind for one in found.problems}


@pytest.mark.parametrize("result", [None, measured()])
def test_a_minute_of_which_nothing_is_known_is_compared_with_nothing(result: WindowResult | None) -> None:
    """Only that the monitor stood still, and that probes dropped stamps, is said."""
    found = compare_minute(InjectedMinute(0, late_us=95_000_000, dropped=1_234), result, LISTED)
    assert [(one.kind, one.text) for one in found.problems] == [
        (ProblemKind.PAUSED, "the monitor stood still for 95.0 s"),
        (ProblemKind.DROPPED, "its probes could not send, and dropped stamps: 1,234"),
    ]
