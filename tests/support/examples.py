"""Counts of cases: of a law that needs more of them than other laws, or fewer; of a slow test with many parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import settings

SOAK: Final = 100
"""Cases of a law in a soak; also hypothesis' own default."""
EVERY_RUN: Final = 25
"""Cases of a law in every run: what a law is there to catch, it catches within these."""


def examples(of_a_soak: int, every_run: int | None = None) -> int:
    """Return the share of a soak's cases that is tried in this run; of a slow law so many, in every run but a soak.

    The profile that is loaded says how many cases a law has that asks for no number of its own; a law that asks for one
    has its cases in the same proportion.
    """
    cases = (settings.default or settings()).max_examples
    if every_run is not None and cases < SOAK:
        return every_run
    return max(1, of_a_soak * cases // SOAK)


def soak_after(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a slow test for ``parametrize``: so many for every run, the others for a soak alone."""
    whole = list(cases)
    return [*whole[:count], *(_soak(case) for case in whole[count:])]


def _soak(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.soak)
