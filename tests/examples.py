"""Numbers of hypothesis examples for laws that need more of them than others, or can afford only fewer."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

SOAK: Final = 100
"""Cases of a law in a soak; also hypothesis' own default."""
EVERY_RUN: Final = 25
"""Cases of a law in every run: what a law is there to catch, it catches within these."""


def examples(of_a_soak: int) -> int:
    """Return the share of a soak's cases that is tried in this run.

    The profile that is loaded says how many cases a law has that asks for no number of its own; a law that asks for one
    has its cases in the same proportion.
    """
    return max(1, of_a_soak * (settings.default or settings()).max_examples // SOAK)
