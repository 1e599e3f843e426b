"""Marks of steps and nodes: a step is shown as the worst verdict of its windows."""

from __future__ import annotations

from dataclasses import dataclass

from hopwatch.display.colours import NO_DATA, VERDICT_ORDER, Mark, select_mark
from hopwatch.monitor.results import NodeResult, NodeRollUp, RollUp, Verdict, WindowResult

StepResult = WindowResult | RollUp
StepNode = NodeResult | NodeRollUp


@dataclass(frozen=True, slots=True)
class StepMark:
    """Mark of a step or node, and whether it is final."""

    mark: Mark
    is_final: bool


def get_start_us(one: StepResult) -> int:
    """Return when it begins."""
    return one.window_start_us if isinstance(one, WindowResult) else one.start_us


def mark_step(one: StepResult) -> StepMark:
    """Return how a window is seen, or an hour or day: as the worst of its windows."""
    if isinstance(one, WindowResult):
        return StepMark(select_mark(one.verdict, one.status), one.status.is_final)
    worst = next((verdict for verdict in VERDICT_ORDER if getattr(one, verdict.value.lower())), None)
    return StepMark(NO_DATA if worst is None else select_mark(worst), is_final=True)


def mark_node(node: StepNode, *, is_final: bool) -> StepMark:
    """Return how a node is seen: LOSSY by its lower bound, CLEAN only where its upper bound is 0, else UNKNOWN."""
    if not is_final:
        return StepMark(select_mark(None), is_final=False)
    if node.loss_lower:
        verdict = Verdict.LOSSY
    elif node.loss_upper is None or node.loss_upper:
        verdict = Verdict.UNKNOWN
    else:
        verdict = Verdict.CLEAN if node.expected or node.seen else Verdict.IDLE
    return StepMark(select_mark(verdict), is_final=True)


def is_final(one: StepResult) -> bool:
    """Return whether it was judged; hours and days are made of what was."""
    return not isinstance(one, WindowResult) or one.status.is_final
