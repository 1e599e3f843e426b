"""Tests of what every page is given."""

from __future__ import annotations

from datetime import UTC
from types import SimpleNamespace

import pytest
import streamlit as st

from dashboards import looking
from dashboards.views.address import Address, Zone


@pytest.mark.parametrize("told", ["America", "x" * 5_000, "../etc", "Nowhere/Else", ""])
def test_a_zone_that_is_none_is_utc(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a browser tells: a folder of zones, a name that is no file's, nothing."""
    monkeypatch.setattr(st, "context", SimpleNamespace(timezone=told))
    assert looking.zone_of(Address(zone=Zone.LOCAL)) is UTC
