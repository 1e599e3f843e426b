"""Fixtures of tests of pages: Streamlit scans the installed packages once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine
from streamlit.components.v2 import manifest_scanner

from tests.support.dashboard_stores import build_windows, fill, store_url


@pytest.fixture(scope="session", autouse=True)
def _components_are_known() -> Iterator[None]:
    """Keep what Streamlit finds among the packages for each page anew: three quarters of what a page costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture
def healthy(tmp_path: Path) -> Engine:
    """Return a store with ten clean minutes."""
    return fill(store_url(tmp_path), *build_windows())
