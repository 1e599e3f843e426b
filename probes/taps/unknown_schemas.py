"""Policy for messages whose schema is not registered."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

MAX_HOLD_S: Final = 3_600.0
"""Time for which a message waits for its schema to be registered, if nothing else is said."""


class UnknownSchema(StrEnum):
    """Choice for a message whose schema is not registered: it counts as bad, or it waits."""

    REJECT = "reject"
    HOLD = "hold"
