"""How a step of a range, and a node in it, is to be seen: as what its windows were judged, and never as better."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.dashboards.views.colours import NOTHING, ORDER, Mark, mark
from hopwatch.monitor.results import NodeResult, NodeRollUp, RollUp, Verdict, WindowResult

Judged = WindowResult | RollUp
JudgedNode = NodeResult | NodeRollUp


@dataclass(frozen=True, slots=True)
class Figures:
    """What is counted, of a range or a window: a mark, and whether it is judged."""

    mark: Mark
    is_final: bool


def start_us(one: Judged) -> int:
    """Return when it begins."""
    return one.window_start_us if isinstance(one, WindowResult) else one.start_us


def of(one: Judged) -> Figures:
    """Return how a window is seen, or an hour or day: as the worst of its windows."""
    if isinstance(one, WindowResult):
        return Figures(mark(one.verdict, one.status), one.status.is_final)
    worst = next((verdict for verdict in ORDER if getattr(one, verdict.value.lower())), None)
    return Figures(NOTHING if worst is None else mark(worst), is_final=True)


def of_node(node: JudgedNode, *, is_final: bool) -> Figures:
    """Return how a node is seen: LOSSY by its lower bound, CLEAN only where its upper bound is 0, else UNKNOWN."""
    if not is_final:
        return Figures(mark(None), is_final=False)
    if node.loss_lower:
        verdict = Verdict.LOSSY
    elif node.loss_upper is None or node.loss_upper:
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.CLEAN if node.expected or node.seen else Verdict.IDLE
    return Figures(mark(verdict), is_final=True)


def is_final(one: Judged) -> bool:
    """Return whether it was judged; hours and days are made of what was."""
    return not isinstance(one, WindowResult) or one.status.is_final
