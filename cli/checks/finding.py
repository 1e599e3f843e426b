"""Finding of a check: level, message and advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """Severity of a finding."""

    OK = "OK"
    NOTE = "NOTE"
    """Worth knowing, and possibly intended; nothing is wrong."""
    WARN = "WARN"
    """It works, but needs attention."""
    FAIL = "FAIL"
    """It does not work: the monitor cannot run, or records of probes do not arrive."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check; ``advice`` is set if there is something to do."""

    check: str
    level: Level
    message: str
    advice: str = ""
