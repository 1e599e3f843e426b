"""Tests of alerts of lag on windows that are not final: late so far, where that cannot be made up for."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from hopwatch.alerts.decision.inputs import LagPoint, WindowInput
from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.results import Status, Verdict
from tests.support.alert_scenario import FIRING, RESOLVED, Play, build_rules
from tests.support.windows import at, lag, window

LAG: Final = "lag/ticket/orders"
RULE: Final = '[alerts]\ndefaults = false\n[[alerts.rules]]\nkind = "lag"\nthreshold = "2s"\nfor = "1m"\n'
SECOND_US: Final = 1_000_000


def open_window(minute: int, late: int, in_time: int, verdict: Verdict | None = None) -> WindowInput:
    """Return a window that is open, in which so many stamps of b are 4 s late, and so many are in time."""
    values = np.array([4 * SECOND_US] * late + [1_000] * in_time, np.int64)
    digest = tdigest.build(values)
    nothing = NodeLags(tdigest.EMPTY, tdigest.EMPTY, tdigest.EMPTY)
    p95 = round(tdigest.quantile(digest, 0.95))
    made = window(minute, status=Status.OPEN, verdict=verdict, nodes={"b": {"lag_out_us": lag(p95, late + in_time)}})
    return WindowInput(made, (nothing, NodeLags(tdigest.EMPTY, digest, tdigest.EMPTY)))


def play(*windows: tuple[float, WindowInput], text: str = RULE, usual: int = 1_000, minutes: int = 5) -> Play:
    """Return a play with a rule of lag, and minutes before the tenth, each with so many stamps."""
    made = Play(build_rules(text))
    made.memory.lags = {"b": [LagPoint(at(10 - before), None, 1_000.0, usual) for before in range(minutes, 0, -1)]}
    made.due = list(windows)
    return made


def test_a_node_that_is_late_is_told_before_its_window_is_final() -> None:
    """With the figures so far, once more than a twentieth of a usual minute is late."""
    one = play((10.2, open_window(10, 50, 20)), (10.3, open_window(10, 51, 20)))
    one.want(10.3, 10.4, FIRING, LAG).run(10.9)
    (alert,) = one.told(LAG).alerts
    assert (alert.word, alert.node, alert.affected, alert.out_of) == ("late", "b", 51, 71)
    assert one.told(LAG).summary.startswith(
        "late so far: p95 of lag out 4.0 s at b of orders, over 2.0 s (51 of 71 stamps), since "
    )


def test_the_final_window_updates_the_incident() -> None:
    """The sentence says what p95 is, and nobody is notified again."""
    one = play((10.3, open_window(10, 200, 20))).push(10, nodes={"b": {"lag_out_us": lag(3 * SECOND_US, 900)}})
    one.want(10.3, 10.4, FIRING, LAG).run(12)
    assert not one.told(LAG).is_news
    assert one.told(LAG).summary.startswith("late: p95 of lag out 3.0 s at b of orders, over 2.0 s")


@pytest.mark.parametrize(
    ("early", "usual", "minutes"),
    [
        (open_window(10, 51, 1_000), 1_000, 5),
        (open_window(10, 51, 20), 1_021, 5),
        (open_window(10, 51, 20), 1_000, 4),
    ],
    ids=["p95 is in time", "the rest of the minute may be in time", "a young node"],
)
def test_a_window_that_may_still_be_in_time_is_not_told(early: WindowInput, usual: int, minutes: int) -> None:
    """Neither is one of which nobody knows how many stamps a minute has."""
    play((10.3, early), usual=usual, minutes=minutes).run(10.9)


def test_more_traffic_than_usual_counts_as_it_is() -> None:
    """A window with more stamps than those before is told once a twentieth of its own are late."""
    play((10.3, open_window(10, 100, 2_000)), usual=100).run(10.9)
    play((10.3, open_window(10, 106, 2_000)), usual=100).want(10.3, 10.4, FIRING, LAG).run(10.9)


def test_a_rule_may_leave_out_what_is_late_so_far() -> None:
    """With early = false it waits until windows are final; other nodes are not its own."""
    for text in (f"{RULE}early = false\n", f'{RULE}nodes = ["a"]\n'):
        play((10.3, open_window(10, 200, 20)), text=text).run(10.9)


def test_a_final_window_that_is_in_time_ends_the_episode() -> None:
    """After more traffic than usual: nobody is notified of what was pending, and what fired ends at once."""
    in_time = {"b": {"lag_out_us": lag(1_000, 9_000)}}
    pending = RULE.replace('"1m"', '"2m"')
    play((10.3, open_window(10, 200, 20)), text=pending).push(10, 12, nodes=in_time).run(14)
    fired = play((10.3, open_window(10, 200, 20))).push(10, 12, nodes=in_time)
    fired.want(10.3, 10.4, FIRING, LAG).want(11, 11.1, RESOLVED, LAG).run(14)
