"""Which side of its node a tap stamps."""

from __future__ import annotations

from enum import StrEnum


class StampSide(StrEnum):
    """The stamp that a tap gives: messages arrive at the node, or leave it."""

    IN = "in"
    OUT = "out"
