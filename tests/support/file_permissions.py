"""Rights that hold for whoever runs the tests: root, whom no permission stops, becomes nobody for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NOBODY: Final = 65_534


@contextmanager
def without_root() -> Iterator[None]:
    """Run the block as a user without special rights; root comes back behind it."""
    if os.geteuid() != 0:
        yield
        return
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
