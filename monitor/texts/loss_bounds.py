"""Text of a loss: its bounds first, so that an unknown number is never shown as lost.

Messages are *missing* that were expected and not seen again: the ``lost`` of a window, the ``loss`` of a node. At
least the lower bound of them is surely lost. The upper bound is never below the lower one; None if it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

UNKNOWN_NUMBER: Final = "?"
"""Shown in place of a number that is not known."""


class LossPart(Enum):
    """Part of a node's loss: on the way to the node, inside it, or after it."""

    ON_THE_WAY = auto()
    INSIDE = auto()
    AFTER = auto()
    SOMEWHERE = auto()


_UNSEEN: Final = {
    LossPart.ON_THE_WAY: "not seen at {}",
    LossPart.INSIDE: "not seen leaving {}",
    LossPart.AFTER: "not seen behind {}",
    LossPart.SOMEWHERE: "missing at {}",
}
_LOST: Final = {
    LossPart.ON_THE_WAY: "lost at {}",
    LossPart.INSIDE: "lost inside {}: it arrived and was not seen leaving",
    LossPart.AFTER: "lost after {}: it left and was not seen behind it",
    LossPart.SOMEWHERE: "lost at {}",
}


def find_loss_part(in_transit: int, inside: int, after: int) -> LossPart:
    """Return the part of a node's loss that holds all its missing messages, SOMEWHERE if there are several."""
    counts = {LossPart.ON_THE_WAY: in_transit, LossPart.INSIDE: inside, LossPart.AFTER: after}
    parts = [part for part, count in counts.items() if count]
    return parts[0] if len(parts) == 1 else LossPart.SOMEWHERE


def is_unknown(lower: int, upper: int | None) -> bool:
    """Return whether the bounds show neither a loss nor its absence."""
    return lower == 0 and upper != 0


def format_bounds(missing: int, lower: int, upper: int | None) -> str:
    """Return the number of lost messages: one number if it is known, else a range, or ``?`` if nothing was seen."""
    if lower == upper:
        return f"{lower:,}"
    if not missing and not lower:
        return UNKNOWN_NUMBER
    return f"{lower:,} to {UNKNOWN_NUMBER if upper is None else f'{upper:,}'}"


def format_ratio(
    ratio: float | None, missing: int, lower: int, upper: int | None, shown: Callable[[float | None], str]
) -> str:
    """Return :func:`format_bounds` as a ratio; ``ratio`` is the missing part, ``shown`` formats a fraction."""
    if lower == upper:
        return shown(ratio)
    if not missing or ratio is None:
        return UNKNOWN_NUMBER
    # Drops of a probe count too, so that the upper bound may be more than all.
    most = UNKNOWN_NUMBER if upper is None else shown(min(1.0, ratio * upper / missing))
    return f"{shown(ratio * lower / missing)} to {most}"


def bound_part(part: int, loss: int, lower: int, upper: int | None) -> tuple[int, int | None]:
    """Return the bounds of one part of a node's loss; its lower bound is what the other parts cannot explain."""
    return max(0, lower - (loss - part)), None if upper is None else part + upper - loss


def describe_missing(node: str, loss: int, lower: int, part: LossPart) -> str:
    """Describe one message that is missing at a node, given the size and the lower bound of the node's loss.

    It does not deny what the node's own stamps say: what arrived there was not seen leaving.
    """
    if not lower:
        return f"{describe_unseen(node, part)}; it is not known whether it was lost"
    if lower < loss:
        return f"{describe_unseen(node, part)}; {lower:,} of {loss:,} like it are surely lost"
    return _LOST[part].format(node)


def describe_unseen(node: str, part: LossPart) -> str:
    """Describe the missing observation of a message at a node."""
    return _UNSEEN[part].format(node)
