"""Command line that runs the gate."""

from __future__ import annotations

import sys
from typing import Final

RUN: Final = (sys.executable, "-m", "hopwatch", "gate")
