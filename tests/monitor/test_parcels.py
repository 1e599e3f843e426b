"""Tests of parcels that become one."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from monitor.parcels import REASONS, join, split
from tests.repository import ROOT


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=4))
def test_joined_parcels_come_apart_as_they_were(triggers: list[list[bytes]]) -> None:
    """However many are added at a time, empty ones too."""
    joined = b""
    for parcels in triggers:
        joined += join(parcels)
    assert list(split(joined)) == [parcel for parcels in triggers for parcel in parcels]


def test_every_reason_of_quarantine_is_named() -> None:
    """Those that records are refused with anywhere, and no others."""
    sources = [*(ROOT / "monitor" / "spark").glob("*.py"), *(ROOT / "probes" / "contract").glob("*.py")]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    named = re.findall(r'RecordError\(\s*"(\w+)"|Frame\([^"\n]*"(\w+)"', text)
    named += re.findall(r'^()UNKNOWN_\w+: Final = "(\w+)"', text, re.MULTILINE)
    either = re.findall(r'reason = "(\w+)" if .* else "(\w+)"', text)
    assert {one for pair in named + either for one in pair if one} == set(REASONS)
