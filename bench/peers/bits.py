"""The stamps of a message as one number: an ``in`` and an ``out`` bit a node, and what a chain makes of them in SQL."""

from __future__ import annotations

from typing import Final

from bench.work import NODES

ALL: Final = (1 << 2 * len(NODES)) - 1

STAMPS: Final = "((lag_in_us IS NOT NULL)::INT | ((lag_out_us IS NOT NULL)::INT << 1)) << (2 * node)"


def seen(node: int) -> int:
    """Return the bits that say that a message was at a node."""
    return 0b11 << 2 * node


def lost_at(mask: int) -> int | None:
    """Return the node at which a message with these stamps was lost in a chain, none if it came through.

    It is the node that saw it last if it did not leave that, else the node behind.
    """
    last = (mask.bit_length() - 1) // 2
    if not mask >> (2 * last + 1) & 1:
        return last
    return last + 1 if last + 1 < len(NODES) else None


def lossy() -> dict[int, int]:
    """Return the node of the loss for every number of stamps that shows one."""
    return {mask: node for mask in range(1, ALL + 1) if (node := lost_at(mask)) is not None}
