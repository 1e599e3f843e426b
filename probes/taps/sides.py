"""Side of its node at which a tap stamps."""

from __future__ import annotations

from enum import StrEnum


class StampSide(StrEnum):
    """Stamp of a tap: ``in`` for messages that arrive at the node, ``out`` for those that leave it."""

    IN = "in"
    OUT = "out"
