"""Tests of the page on architecture: it names every folder, and every file that it names is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.repository import ROOT

PAGE: Final = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
SOURCES: Final = (
    "src/hopwatch",
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
)
OTHERS: Final = ("changes", "docker", "jars", "requirements", "servers", "tests")
UNNAMED: Final = ("monitor/store/migrations/versions", "probes/jvm/src")
"""Folders that a named one is about, and those in them."""


def folders() -> set[str]:
    """Return the folders of the product that hold files of their own."""
    found = {path.parent for source in SOURCES for path in (ROOT / source).rglob("*") if path.is_file()}
    names = {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}
    return {name for name in names if not name.startswith(UNNAMED)}


def named_files() -> list[str]:
    """Return the files that the table of an observation's way, and the table of places to begin, name."""
    way = PAGE[PAGE.index("## The way of one observation") : PAGE.index("## Folders")]
    return re.findall(rf"`((?:{'|'.join((*SOURCES, *OTHERS))})/[a-z_/]+\.py)", way)


def test_every_folder_has_a_line() -> None:
    """A reader finds the purpose of each folder of the product, and of the folders beside it."""
    table = PAGE[PAGE.index("## Folders") : PAGE.index("## The job")]
    named = {name.rstrip("/") for name in re.findall(r"`([a-z_/]+)/`", table)}
    assert named >= folders() | set(OTHERS)
    assert [name for name in named if not (ROOT / name).is_dir() and not (ROOT / "tests" / name).is_dir()] == []


def test_every_named_file_is_there() -> None:
    """The way of an observation, and the places to begin, are files of today."""
    assert len(named_files()) > 20
    assert [name for name in named_files() if not Path(ROOT, name).is_file()] == []
