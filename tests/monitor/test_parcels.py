"""Tests of parcels that become one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitor.parcels import join, split


@given(st.lists(st.lists(st.binary(max_size=300), max_size=4), max_size=4))
def test_joined_parcels_come_apart_as_they_were(triggers: list[list[bytes]]) -> None:
    """However many are added at a time, empty ones too."""
    joined = b""
    for parcels in triggers:
        joined += join(parcels)
    assert list(split(joined)) == [parcel for parcels in triggers for parcel in parcels]
