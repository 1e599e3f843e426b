"""Line-by-line comparison of the injected faults, by the demo's truth logs, with the monitor's measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from hopwatch.demo.comparison_line import ComparisonLine, expect_at_most, expect_equal, format_difference
from hopwatch.demo.entrance.rejections import Rejection
from hopwatch.demo.entrance.rejections import compare_rejections as rejection_lines
from hopwatch.demo.faults import Faults
from hopwatch.demo.measurements import Json, Measurements, parse_start_us
from hopwatch.demo.node_comparison import compare_node, count_excess, format_excess, surely_lost_ids
from hopwatch.demo.stream import GATE
from hopwatch.demo.truth import NodeAction, Truth, split_ids


def compare(
    faults: Faults,
    truth: Truth,
    measured: Measurements,
    *,
    is_reliable: bool = False,
    rejections: Iterable[Rejection] = (),
) -> list[ComparisonLine]:
    """Return all lines: end to end, node by node, and what the monitor must never do.

    ``is_reliable`` says that the links lose nothing when a node is killed, ``rejections`` what the gate was sent that
    was broken.
    """
    lines = [*_end_to_end(faults, truth, measured)]
    for node in truth.nodes:
        lines.extend(compare_node(node, faults, truth, measured))
        if node == GATE:
            lines.extend(rejection_lines(rejections))
    if faults.kills:
        lines.append(_kill_line(truth, measured, is_reliable=is_reliable))
    lines.append(_verdict_line(faults, truth, measured))
    lines.append(expect_equal("refused by the monitor", "", 0, measured.refused))
    return lines


def _end_to_end(faults: Faults, truth: Truth, measured: Measurements) -> Iterator[ComparisonLine]:
    known = expect_at_most if truth.nodes[0] in faults.blurred else expect_equal
    yield known("messages", "", len(truth.created), measured.total("known"))
    delivered = expect_at_most if faults.blurred.intersection(truth.terminals) else expect_equal
    yield delivered("delivered", "", len(truth.delivered), measured.total("delivered"))
    yield _lost_line(faults, truth, measured)
    yield _sum_line(measured)


def _lost_line(faults: Faults, truth: Truth, measured: Measurements) -> ComparisonLine:
    """Return the line of all that is lost: exact, or where a node is blurred within the bounds of every window."""
    if not faults.blurred:
        return expect_equal("lost end to end", "", len(truth.lost), measured.total("lost"))
    lost = _by_window(truth, truth.lost)
    uppers = [window["lost_upper"] for window in measured.windows]
    holds = all(
        window["lost_lower"] <= lost[parse_start_us(window)] <= (np.inf if upper is None else upper)
        for window, upper in zip(measured.windows, uppers, strict=True)
    )
    upper_text = "?" if None in uppers else f"{sum(uppers):,}"
    bounds = f"{measured.total('lost_lower'):,} … {upper_text}"
    return ComparisonLine("lost end to end", "", f"{len(truth.lost):,}", "∈", bounds, holds)


def _sum_line(measured: Measurements) -> ComparisonLine:
    """Return the line of conservation: in every window known = delivered + filtered + rejected + lost."""
    adding_up = sum(
        window["known"] == window["delivered"] + window["filtered"] + window["rejected"] + window["lost"]
        for window in measured.windows
    )
    return expect_equal("windows, and those that add up", "", len(measured.windows), adding_up)


def _kill_line(truth: Truth, measured: Measurements, *, is_reliable: bool) -> ComparisonLine:
    """Return the line of what the kills took: what is called surely lost, at whatever node, was really lost.

    Over reliable links they took nothing, and nothing may be called so.
    """
    lost, dropped = split_ids(truth.lost), split_ids(truth.anywhere(NodeAction.DROPPED))
    sure = set().union(*(surely_lost_ids(node, truth, measured) for node in truth.nodes)) - dropped
    excess = sum(count_excess(node, lost, truth, measured) for node in truth.nodes)
    text = f"{len(sure):,} surely{format_difference(set(), sure - lost)}{format_excess(excess)}"
    taken = lost - dropped
    if is_reliable:
        return ComparisonLine("lost by kills", "", f"{len(taken):,}", "=", text, not taken and not sure and not excess)
    return ComparisonLine("lost by kills", "", f"{len(taken):,}", "≥", text, sure <= lost and not excess)


def _verdict_line(faults: Faults, truth: Truth, measured: Measurements) -> ComparisonLine:
    """Return the line of the verdicts: LOSSY where something was lost, else CLEAN; with blurred nodes also UNKNOWN."""
    lost = _by_window(truth, truth.lost)
    right = {start: "LOSSY" if lost[start] else "CLEAN" for start in _by_window(truth, truth.created)}
    given = _verdicts(measured.windows)
    found = {start: given.get(start, "missing") for start in right}
    allowed = {"UNKNOWN"} if faults.blurred else set()
    holds = all(found[start] in {right[start], *allowed} for start in right)
    relation = "≥" if faults.blurred else "="
    return ComparisonLine("verdicts", "", _counted(right), relation, _counted(found), holds)


def _verdicts(windows: list[Json]) -> dict[int, str]:
    return {parse_start_us(window): str(window["verdict"]) for window in windows}


def _counted(verdicts: dict[int, str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(verdicts.values()).items()))


def _by_window(truth: Truth, ids: np.ndarray) -> Counter[int]:
    return Counter(truth.windows_us(ids).tolist())
