"""Command line that runs the gate, also over the topics of a single broker."""

from __future__ import annotations

import sys
from typing import Final

RUN: Final = (sys.executable, "-m", "hopwatch", "gate", "--allow-weak")
