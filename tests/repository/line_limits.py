"""Limit of the lines of pages."""

from __future__ import annotations

from typing import Final

MOST_COLUMNS: Final = 120
