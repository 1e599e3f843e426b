"""A loss in words, of a step of a range and of a node in it: bounds first, and never more than is surely lost."""

from __future__ import annotations

from hopwatch.display import texts
from hopwatch.display.step_marks import StepNode, StepResult
from hopwatch.monitor.texts import loss_bounds


def format_loss(one: StepResult) -> str:
    """Return how many were lost end to end: from where to where, unless that is one number."""
    return loss_bounds.format_bounds(one.lost, one.lost_lower, one.lost_upper)


def format_loss_ratio(one: StepResult) -> str:
    """Return what was lost end to end as a part of all that is known."""
    return loss_bounds.format_ratio(one.loss_ratio, one.lost, one.lost_lower, one.lost_upper, texts.format_ratio)


def format_node_loss(node: StepNode) -> str:
    """Return how many a node lost: from where to where, unless that is one number."""
    return loss_bounds.format_bounds(node.loss, node.loss_lower, node.loss_upper)


def format_node_loss_ratio(node: StepNode) -> str:
    """Return what a node lost as a part of what was expected or seen there."""
    return loss_bounds.format_ratio(node.loss_ratio, node.loss, node.loss_lower, node.loss_upper, texts.format_ratio)


def format_unknown(lower: int, upper: int | None) -> str:
    """Return what follows on bounds between which neither a loss nor its absence is shown."""
    return ", unknown" if loss_bounds.is_unknown(lower, upper) else ""


def format_missing(missing: int, lower: int, upper: int | None) -> str:
    """Return how many of some missing messages are lost, in short, or that this is not known."""
    return f"{loss_bounds.format_bounds(missing, lower, upper)}{format_unknown(lower, upper) or ' lost'}"


def bound_part(node: StepNode, name: str) -> tuple[int, int | None]:
    """Return the bounds of a part of a node's loss: on the way to it, inside it or after it."""
    return loss_bounds.bound_part(getattr(node, name), node.loss, node.loss_lower, node.loss_upper)


def format_partial(one: StepResult) -> str:
    """Return how many were delivered on one of their ways and are missing on another; nothing of none."""
    if not one.partial:
        return ""
    those = "lost" if one.lost == one.lost_lower else "missing"
    return f"of the {those} {one.partial:,} were delivered elsewhere: they left another end of the pathway"
