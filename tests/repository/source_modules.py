"""Modules of the product, and its benches, parsed."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

from tests.repository import ROOT

PACKAGES: Final = (
    "probes",
    "gate",
    "client",
    "deliver",
    "scale",
    "rate",
    "monitor",
    "alerts",
    "display",
    "api",
    "dashboards",
    "cli",
    "demo",
    "bench",
    "src/hopwatch",
)
MODULES: Final = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if not path.is_symlink() and "versions" not in path.parts
)


@cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    """Return every module of the product, parsed, by its path in the repository."""
    return tuple((path.relative_to(ROOT), ast.parse(path.read_text())) for path in MODULES)
