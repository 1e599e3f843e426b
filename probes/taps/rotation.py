"""Rotated copies of a log file: ``app.log.1``, ``app.log.2026-11-21``, ``app.log-20261121``, from old to new."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from hopwatch.probes.taps.marked_file import MarkedFile

_SUFFIX: Final = re.compile(r"[.-](\d[\d.:T_-]*)")
"""Suffix that rotation adds to a name; compressed files have another one, and are ignored."""
_MAX_DIGITS: Final = 7
"""A number of more digits is a date: of numbers the higher is the older file, of dates the later the newer."""


def list_rotated(path: Path) -> list[Path]:
    """List the rotated copies of a file, the oldest first."""
    try:
        found = [other for other in path.parent.iterdir() if _SUFFIX.fullmatch(_find_suffix(path, other))]
    except FileNotFoundError:
        return []
    # By name, not by time: a writer may keep a renamed file open, and so write to the older one last.
    return sorted(found, key=lambda other: _sort_key(_find_suffix(path, other)))


def find_successor(path: Path, left: MarkedFile) -> Path:
    """Find the file that was started after ``left`` was renamed; it may have been rotated itself since."""
    others = list_rotated(path)
    here = next((at for at, other in enumerate(others) if left.has_name(other)), None)
    if here is not None:
        return [*others, path][here + 1]
    # It is gone, or has a name that rotation does not give.
    return next((other for other in others if _written_ns(other) > left.written_ns), path)


def _find_suffix(path: Path, other: Path) -> str:
    return other.name[len(path.name) :] if other.name.startswith(path.name) else ""


def _sort_key(suffix: str) -> tuple[int, str]:
    number = suffix[1:]
    return (-int(number), "") if number.isdecimal() and len(number) <= _MAX_DIGITS else (1, suffix)


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
