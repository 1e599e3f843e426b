"""Tests that hold the build files true."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""The repository."""
