"""Injected against measured at one node: ids lost, messages stopped, repeated, delayed, clocks set wrong.

A node is *blurred* when its probe could not tell all: it was killed, or its transport refused batches. At such a node
the monitor may say less than what happened, and never more; at all others it has to be exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hopwatch.demo.comparison_line import ComparisonLine, expect_at_most, expect_equal, expect_within, format_difference
from hopwatch.demo.faults import Faults
from hopwatch.demo.measurements import Measurements
from hopwatch.demo.stream import GATE
from hopwatch.demo.truth import NodeAction, Truth, split_ids

SHIFT_TOLERANCE_S: Final = 0.5
"""Tolerance of a median: a message needs milliseconds per node, the rest is room for a busy machine."""
STEP_S: Final = 0.01
"""Tolerated drift, during a delay, between the wall clock, which stamps, and the monotonic clock, which delays."""
BORDER_S: Final = 0.1
"""A stamp whose true lag is this close to the skew may come out negative or not."""
FORWARDED: Final = (NodeAction.HANDED_ON, NodeAction.REPEATED)
STOPPED: Final = (NodeAction.DROPPED, NodeAction.FILTERED, NodeAction.REJECTED)


def compare_node(node: str, faults: Faults, truth: Truth, measured: Measurements) -> Iterator[ComparisonLine]:
    """Yield the lines of one node; those of faults that neither happened nor were measured are left out."""
    yield compare_lost_ids(node, faults, truth, measured)
    counted = expect_at_most if node in faults.blurred else expect_equal
    for what, deed in (("filtered", NodeAction.FILTERED), ("rejected", NodeAction.REJECTED)):
        injected, found = len(truth.ids(node, deed)), measured.node_total(node, what)
        if injected or found:
            yield counted(what, node, injected, found)
    if node not in truth.receivers:  # whose logs have what came to them, and not what was polled for them
        yield from _duplicate_lines(node, faults, truth, measured)
    untold = truth.count(node, NodeAction.UNTOLD)
    if untold or measured.node_total(node, "dropped"):
        told = expect_at_most if node in faults.killed else expect_equal
        yield told("dropped by the probe", node, untold, measured.node_total(node, "dropped"))
    yield from _delay_lines(node, faults, measured)
    yield from _skew_lines(node, faults, truth, measured)


def compare_lost_ids(node: str, faults: Faults, truth: Truth, measured: Measurements) -> ComparisonLine:
    """Return the line of the ids that are lost at a node.

    Nothing blurred: exactly those it dropped. Elsewhere in a run with blurred nodes: at least those it dropped, and
    besides them only what was really lost. At a blurred node: what is called *surely* lost was really lost.
    """
    dropped, lost = split_ids(truth.ids(node, NodeAction.DROPPED)), split_ids(truth.lost)
    found = measured.lost_ids(node)
    if node in faults.blurred:
        sure, excess = surely_lost_ids(node, truth, measured), count_excess(node, lost, truth, measured)
        count = len(sure) + sum(measured.partly_lost(node).values())
        text = f"{count:,} surely{format_difference(set(), sure - lost)}{format_excess(excess)}"
        return ComparisonLine("lost ids", node, f"{len(dropped & lost):,}", "≥", text, sure <= lost and not excess)
    kept, loss = measured.kept_count(node), measured.node_total(node, "loss")
    allowed = lost if faults.blurred else dropped
    # The store keeps the first ids of a window and counts the others: of those, none can be missing.
    missing = dropped - found if kept == loss else set()
    extra = found - allowed
    holds = not missing and not extra and len(found) == kept and len(dropped) <= loss <= len(allowed)
    relation = "⊆" if faults.blurred else "="
    return ComparisonLine(
        "lost ids", node, f"{len(dropped):,}", relation, f"{loss:,}{format_difference(missing, extra)}", holds
    )


def surely_lost_ids(node: str, truth: Truth, measured: Measurements) -> set[bytes]:
    """Return the ids that the monitor calls surely lost at a node, where it can say which.

    They are all that it lost in the windows in which the lower bound is all of the loss, and any id that nobody
    created: it belongs to no window, and must not be overlooked.
    """
    found = np.array(sorted(measured.lost_ids(node)), dtype="S16")
    created = np.isin(found, truth.created)
    known = found[created]
    sure = np.isin(truth.windows_us(known), list(measured.surely_lost_starts_us(node)))
    return split_ids(np.concatenate([known[sure], found[~created]]))


def count_excess(node: str, lost: set[bytes], truth: Truth, measured: Measurements) -> int:
    """Return by how many the monitor calls more surely lost at a node than were, where it cannot say which."""
    found = np.array(sorted(measured.lost_ids(node) & lost), dtype="S16")
    really = Counter(truth.windows_us(found[np.isin(found, truth.created)]).tolist())
    return sum(max(0, count - really[start_us]) for start_us, count in measured.partly_lost(node).items())


def format_excess(excess: int) -> str:
    """Return it in words; nothing if it is none."""
    return f", {excess:,} too many" if excess else ""


def _duplicate_lines(node: str, faults: Faults, truth: Truth, measured: Measurements) -> Iterator[ComparisonLine]:
    counted = expect_at_most if node in faults.blurred else expect_equal
    sides = [("in", FORWARDED + STOPPED), ("out", FORWARDED)]
    if node in faults.killed:
        del sides[0]  # it took messages, and had no time to write down what became of them
    for side, deeds in sides:
        injected = truth.count(node, *deeds) - len(truth.ids(node, *deeds))
        found = measured.node_total(node, f"duplicates_{side}")
        if injected or found:
            yield counted(f"duplicates {side}", node, injected, found)


def _delay_lines(node: str, faults: Faults, measured: Measurements) -> Iterator[ComparisonLine]:
    """Yield the line of a delay: the time inside the node shows it.

    A probe joins the two stamps of a message that it takes within one flush, and then p95 of the durations is at least
    the delay. Longer ones it tells apart, and then the medians of the two lags lie that far from each other.
    """
    delay_s, entry = faults.select_node(node).delay_s, measured.fullest(node)
    if not delay_s or entry is None:
        return
    if entry["inside_us"]:
        inside_s = entry["inside_us"]["p95"] / 1e6
        yield ComparisonLine(
            "delay, p95 inside", node, f"{delay_s:g} s", "≤", f"{inside_s:.3f} s", delay_s <= inside_s + STEP_S
        )
    else:
        shift_s = _p50_s(entry["lag_out_us"]) - _p50_s(entry["lag_in_us"])
        holds = abs(shift_s - delay_s) <= SHIFT_TOLERANCE_S
        yield ComparisonLine("delay, p50 out less in", node, f"{delay_s:g} s", "≈", f"{shift_s:.3f} s", holds)


def _skew_lines(node: str, faults: Faults, truth: Truth, measured: Measurements) -> Iterator[ComparisonLine]:
    skew_s = faults.select_node(node).skew_s
    if skew_s:
        shift_s = _clock_shift_s(node, faults, truth, measured)
        holds = abs(shift_s - skew_s) <= SHIFT_TOLERANCE_S
        yield ComparisonLine("clock skew, p50 of lag", node, f"{skew_s:+g} s", "≈", f"{shift_s:+.3f} s", holds)
    found = measured.node_total(node, "lag_negative")
    if skew_s < 0 or found:
        lower, upper = _negative_stamps(node, faults, truth)
        yield expect_within("negative lags", node, 0 if node in faults.blurred else lower, upper, found)


def _clock_shift_s(node: str, faults: Faults, truth: Truth, measured: Measurements) -> float:
    """Return how far the lag jumps on the way to this node, less what the clock of the node before is wrong by.

    Behind the gate messages wait in its spool, and only the truth knows how long.
    """
    here = measured.fullest(node)
    arrived_s = _p50_s(here["lag_in_us"]) if here else 0.0
    place = truth.nodes.index(node)
    if place == 0:
        return arrived_s
    name = truth.nodes[place - 1]
    if name == GATE:
        return arrived_s - (_median_s(truth.lags_us(node, *FORWARDED)) - faults.select_node(node).delay_s)
    before = measured.fullest(name)
    left_s = _p50_s(before["lag_out_us"]) if before else 0.0
    return arrived_s - left_s + faults.select_node(name).skew_s


def _median_s(lags_us: NDArray[np.int64]) -> float:
    return float(np.median(lags_us)) / 1e6 if len(lags_us) else 0.0


def _p50_s(lag_us: dict[str, int] | None) -> float:
    return lag_us["p50"] / 1e6 if lag_us else 0.0


def _negative_stamps(node: str, faults: Faults, truth: Truth) -> tuple[int, int]:
    """Return how many stamps must have come out negative by the clock's being behind, and how many may have."""
    own = faults.select_node(node)
    left_s = truth.lags_us(node, *FORWARDED) / 1e6 + own.skew_s
    arrived_at_latest_s = np.concatenate([left_s - own.delay_s, truth.lags_us(node, *STOPPED) / 1e6 + own.skew_s])
    lower = np.count_nonzero(left_s < -BORDER_S) + np.count_nonzero(arrived_at_latest_s < -BORDER_S)
    upper = np.count_nonzero(left_s < BORDER_S) + len(arrived_at_latest_s) if own.skew_s < 0 else 0
    return int(lower), int(upper)
