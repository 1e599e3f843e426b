"""Outlets of the gate of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

SPOOL: Final = "spool:"


class GateOutlets(NamedTuple):
    """The gate's two outlet URLs: for accepted and for rejected events."""

    events: str
    rejected: str


def build_spool_outlets(folder: Path) -> GateOutlets:
    """Return spools in the folder of a run."""
    return GateOutlets(f"{SPOOL}{folder / 'events'}", f"{SPOOL}{folder / 'rejected'}")
