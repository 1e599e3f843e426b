"""Slow work at the end of a process: imported before any probe, and so run after the probe's end."""

from __future__ import annotations

import atexit
import time
from typing import Final

LINGER_S: Final = 0.3
_asked: list[float] = []


def linger() -> None:
    """Have this process take a while to end, as a service does that tidies up: its daemon threads go on meanwhile."""
    _asked.append(LINGER_S)


def _linger() -> None:
    time.sleep(sum(_asked))


atexit.register(_linger)
