"""Selection of the nodes to plot: the worst first, at most as many as a chart can hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hopwatch.monitor.results import RollUp, WindowResult

MAX_SLOW: Final = 8
"""Nodes whose process durations are told apart by colour at most."""

WindowOrRollUp = WindowResult | RollUp


def select_lossiest(names: Sequence[str], one: WindowOrRollUp | None, most: int) -> tuple[str, ...]:
    """Return at most so many nodes, those that lost most, in the pathway's order; the first ones of what is unknown."""
    if len(names) <= most or one is None:
        return tuple(names[: max(0, most)])
    losses = {node.node: node.loss for node in one.nodes}
    kept = sorted(names, key=lambda name: -losses.get(name, 0))[: max(0, most)]
    return tuple(name for name in names if name in kept)


def select_slowest(one: WindowOrRollUp, most: int) -> tuple[str, ...]:
    """Return the nodes that have a process duration, the longest ones if there are many, in the pathway's order."""
    timed = [node for node in one.nodes if node.process_duration_p95_us is not None]
    longest = sorted(timed, key=lambda node: -(node.process_duration_p95_us or 0))[:most]
    return tuple(node.node for node in timed if node in longest)
