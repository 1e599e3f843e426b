"""A loss as people read it: its bounds first, so that what nobody knows is never shown as lost.

What is *missing* was expected and not seen again: the ``lost`` of a window, the ``loss`` of a node. Of it at least the
lower bound is surely lost; the upper bound is no less than it, and None where nobody knows one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

NOT_KNOWN: Final = "?"
"""There is a number, and nobody knows it."""


class Part(Enum):
    """Where in the loss of a node a missing message is, as far as is known: whether it was seen there, and left."""

    ON_THE_WAY = auto()
    INSIDE = auto()
    AFTER = auto()
    SOMEWHERE = auto()


_UNSEEN: Final = {
    Part.ON_THE_WAY: "not seen at {}",
    Part.INSIDE: "not seen leaving {}",
    Part.AFTER: "not seen behind {}",
    Part.SOMEWHERE: "missing at {}",
}
_LOST: Final = {
    Part.ON_THE_WAY: "lost at {}",
    Part.INSIDE: "lost inside {}: it arrived and was not seen leaving",
    Part.AFTER: "lost after {}: it left and was not seen behind it",
    Part.SOMEWHERE: "lost at {}",
}


def part_of(in_transit: int, inside: int, after: int) -> Part:
    """Return in which part of a node's loss each of its missing messages is, if all are in one."""
    counts = {Part.ON_THE_WAY: in_transit, Part.INSIDE: inside, Part.AFTER: after}
    parts = [part for part, count in counts.items() if count]
    return parts[0] if len(parts) == 1 else Part.SOMEWHERE


def is_unknown(lower: int, upper: int | None) -> bool:
    """Return whether neither a loss nor its absence is shown."""
    return lower == 0 and upper != 0


def said(missing: int, lower: int, upper: int | None) -> str:
    """Return how many were lost: one number where it is known, else from where to where; of nothing seen, a ``?``."""
    if lower == upper:
        return f"{lower:,}"
    if not missing and not lower:
        return NOT_KNOWN
    return f"{lower:,} to {NOT_KNOWN if upper is None else f'{upper:,}'}"


def share(
    ratio: float | None, missing: int, lower: int, upper: int | None, shown: Callable[[float | None], str]
) -> str:
    """Return :func:`said` as a part of the whole; ``ratio`` is what is missing of it, ``shown`` writes a fraction."""
    if lower == upper:
        return shown(ratio)
    if not missing or ratio is None:
        return NOT_KNOWN
    # Drops of a probe count too, so that the upper bound may be more than all.
    most = NOT_KNOWN if upper is None else shown(min(1.0, ratio * upper / missing))
    return f"{shown(ratio * lower / missing)} to {most}"


def of_part(part: int, loss: int, lower: int, upper: int | None) -> tuple[int, int | None]:
    """Return the bounds of a part of a node's loss: what of the lower bound the other parts cannot account for."""
    return max(0, lower - (loss - part)), None if upper is None else part + upper - loss


def not_seen(node: str, loss: int, lower: int, part: Part) -> str:
    """Return what is known of one message that is missing at a node, whose loss has this size and lower bound.

    It does not deny what the node's own stamps say: what arrived there was not seen leaving.
    """
    if not lower:
        return f"{unseen(node, part)}; it is not known whether it was lost"
    if lower < loss:
        return f"{unseen(node, part)}; {lower:,} of {loss:,} like it are surely lost"
    return _LOST[part].format(node)


def unseen(node: str, part: Part) -> str:
    """Return what was not seen of a message that is missing at a node."""
    return _UNSEEN[part].format(node)
