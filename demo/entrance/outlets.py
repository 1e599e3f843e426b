"""Where the gate of a run writes to."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

SPOOL: Final = "spool:"


class GateOutlets(NamedTuple):
    """The URLs that the gate is configured with: for what it lets in, and for what it rejects."""

    events: str
    rejected: str


def build_spool_outlets(folder: Path) -> GateOutlets:
    """Return spools in the folder of a run."""
    return GateOutlets(f"{SPOOL}{folder / 'events'}", f"{SPOOL}{folder / 'rejected'}")
