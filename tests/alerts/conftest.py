"""What tests of alerts share: an empty store, in either database."""

from __future__ import annotations

from tests.monitor.store.conftest import engine, url

__all__ = ["engine", "url"]
