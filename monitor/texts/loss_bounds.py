"""A loss as people read it: its bounds first, so that what nobody knows is never shown as lost.

What is *missing* was expected and not seen again: the ``lost`` of a window, the ``loss`` of a node. Of it at least the
lower bound is surely lost; the upper bound is no less than it, and None where nobody knows one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

UNKNOWN_NUMBER: Final = "?"
"""There is a number, and nobody knows it."""


class LossPart(Enum):
    """Where in the loss of a node a missing message is, as far as is known: whether it was seen there, and left."""

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
    """Return in which part of a node's loss each of its missing messages is, if all are in one."""
    counts = {LossPart.ON_THE_WAY: in_transit, LossPart.INSIDE: inside, LossPart.AFTER: after}
    parts = [part for part, count in counts.items() if count]
    return parts[0] if len(parts) == 1 else LossPart.SOMEWHERE


def is_unknown(lower: int, upper: int | None) -> bool:
    """Return whether neither a loss nor its absence is shown."""
    return lower == 0 and upper != 0


def format_bounds(missing: int, lower: int, upper: int | None) -> str:
    """Return how many were lost: one number where it is known, else from where to where; of nothing seen, a ``?``."""
    if lower == upper:
        return f"{lower:,}"
    if not missing and not lower:
        return UNKNOWN_NUMBER
    return f"{lower:,} to {UNKNOWN_NUMBER if upper is None else f'{upper:,}'}"


def format_ratio(
    ratio: float | None, missing: int, lower: int, upper: int | None, shown: Callable[[float | None], str]
) -> str:
    """Return :func:`said` as a part of the whole; ``ratio`` is what is missing of it, ``shown`` writes a fraction."""
    if lower == upper:
        return shown(ratio)
    if not missing or ratio is None:
        return UNKNOWN_NUMBER
    # Drops of a probe count too, so that the upper bound may be more than all.
    most = UNKNOWN_NUMBER if upper is None else shown(min(1.0, ratio * upper / missing))
    return f"{shown(ratio * lower / missing)} to {most}"


def bound_part(part: int, loss: int, lower: int, upper: int | None) -> tuple[int, int | None]:
    """Return the bounds of a part of a node's loss: what of the lower bound the other parts cannot account for."""
    return max(0, lower - (loss - part)), None if upper is None else part + upper - loss


def describe_missing(node: str, loss: int, lower: int, part: LossPart) -> str:
    """Return what is known of one message that is missing at a node, whose loss has this size and lower bound.

    It does not deny what the node's own stamps say: what arrived there was not seen leaving.
    """
    if not lower:
        return f"{describe_unseen(node, part)}; it is not known whether it was lost"
    if lower < loss:
        return f"{describe_unseen(node, part)}; {lower:,} of {loss:,} like it are surely lost"
    return _LOST[part].format(node)


def describe_unseen(node: str, part: LossPart) -> str:
    """Return what was not seen of a message that is missing at a node."""
    return _UNSEEN[part].format(node)
