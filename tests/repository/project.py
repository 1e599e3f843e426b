"""The table [project] of pyproject.toml, and the modules that a service embeds."""

from __future__ import annotations

import tomllib
from typing import Final

from tests.repository import ROOT

TEXT: Final = (ROOT / "pyproject.toml").read_text()
PROJECT: Final = tomllib.loads(TEXT)
EMBEDDED: Final = """
import importlib.abc, sys
class OnlyBase(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {others!r}:
            raise ModuleNotFoundError(f"not among the base dependencies: {{name}}", name=name)
sys.meta_path.insert(0, OnlyBase())
from hopwatch import Probe
"""
