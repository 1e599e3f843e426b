"""What a check found: a level, what was seen, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "OK"
    NOTE = "NOTE"
    """It may be what was meant, and somebody should know of it; nothing is wrong."""
    WARN = "WARN"
    """It works, and somebody should look."""
    FAIL = "FAIL"
    """It does not work like this: the monitor cannot, or what probes send does not come."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; there is advice where something is to be done."""

    check: str
    level: Level
    message: str
    advice: str = ""
