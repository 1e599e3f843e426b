"""Errors of files that are imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hopwatch.probes.taps.errors import TapUsageError

MAX_NAMED: Final = 30
"""Columns that an error names at most."""


class MappingError(TapUsageError):
    """Mapping that does not fit a file: a column that is not there, or times whose zone nobody says."""


class CutError(Exception):
    """File that ends before its end: what stood before was read."""


class UnreadableFileError(Exception):
    """File of which nothing, or nothing more, can be read."""


def describe_missing_column(name: str, there: Iterable[str]) -> str:
    """Describe a column that is not there, with those that are."""
    names = list(there)
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return f"there is no column {name!r:.80}, there are {', '.join(names[:MAX_NAMED]) or 'none'}{more}"
