"""Fixtures of tests of pages: Streamlit scans the installed packages once, and garbage is collected once a minute."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine
from streamlit.components.v2 import manifest_scanner

from hopwatch.dashboards import app
from hopwatch.dashboards.app import GarbageTimer
from tests.support.dashboard_stores import build_windows, fill, store_url


@pytest.fixture(scope="session", autouse=True)
def _components_are_known() -> Iterator[None]:
    """Keep what Streamlit finds among the packages for each page anew: three quarters of what a page costs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


class _WallTimer(GarbageTimer):
    """Timer of this machine's time, as that of each test stands at the same moment or begins anew."""

    def collect_if_due(self, now_s: float) -> bool:
        """Collect garbage, of thousands of tests too, if a minute is over."""
        del now_s
        return super().collect_if_due(time.monotonic())


@pytest.fixture(scope="session", autouse=True)
def _garbage_is_rarely_collected() -> Iterator[None]:
    """Keep one timer for all pages."""
    timer = _WallTimer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "_open_garbage_timer", lambda: timer)
        yield


@pytest.fixture
def healthy(tmp_path: Path) -> Engine:
    """Return a store with ten clean minutes."""
    return fill(store_url(tmp_path), *build_windows())
