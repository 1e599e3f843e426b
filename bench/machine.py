"""Description of the machine that the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Final, NamedTuple

_CPUINFO: Final = Path("/proc/cpuinfo")


class Machine(NamedTuple):
    """The processor, how many of its cores there are, and how many were busy in the minute before the bench."""

    processor: str
    cores: int
    load: float
    python: str

    def __str__(self) -> str:
        """Return it in a line."""
        return f"{self.processor}, {self.cores} cores, {self.load:.2f} of them busy before, Python {self.python}"


def describe_machine() -> Machine:
    """Return this machine."""
    return Machine(_processor(), os.cpu_count() or 1, os.getloadavg()[0], platform.python_version())


def _processor() -> str:
    named = (
        re.search(r"^model name\s*: (.*)$", _CPUINFO.read_text("utf-8"), re.MULTILINE) if _CPUINFO.exists() else None
    )
    return named.group(1).strip() if named else platform.machine()
