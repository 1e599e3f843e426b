"""Laws of the gate's own records: each is read as it was written, and none is taken for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import records
from hopwatch.gate.codec import EnvelopeError
from hopwatch.gate.records import Entered, Rejected, Replayed
from hopwatch.probes.http.problems import Fault

IDS = st.binary(min_size=16, max_size=16)
MOMENTS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text()
ENTERED = st.builds(Entered, TEXTS, IDS, MOMENTS, MOMENTS, st.binary())
FAULTS = st.lists(st.builds(Fault, TEXTS, TEXTS), max_size=3).map(tuple)
REJECTED = st.builds(Rejected, TEXTS, IDS, MOMENTS, MOMENTS, TEXTS, st.binary(), FAULTS, is_held=st.booleans())
REPLAYED = st.builds(Replayed, IDS, MOMENTS)


@given(ENTERED)
def test_an_event_in_a_spool_is_read_as_it_was_written(entered: Entered) -> None:
    """Its bytes too."""
    assert Entered.read(entered.record()) == entered


@given(REJECTED | REPLAYED)
def test_what_was_rejected_is_read_as_it_was_written(one: Rejected | Replayed) -> None:
    """With its reasons; and that it was replayed."""
    assert records.of_rejected(one.record()) == one


@given(ENTERED, REJECTED)
def test_none_is_taken_for_another(entered: Entered, rejected: Rejected) -> None:
    """The first 33 bytes tell them apart."""
    with pytest.raises(
        EnvelopeError, match="an event that was rejected begins with 81 and 32 bytes of fingerprint, got"
    ):
        records.of_rejected(entered.record())
    with pytest.raises(EnvelopeError, match="an event that entered begins with 81 and 32 bytes of fingerprint, got"):
        Entered.read(rejected.record())


@given(REJECTED, st.data())
def test_a_record_that_was_cut_is_none(rejected: Rejected, data: st.DataObject) -> None:
    """Nor is one with bytes behind it."""
    record = rejected.record()
    with pytest.raises(EnvelopeError):
        records.of_rejected(record[: data.draw(st.integers(0, len(record) - 1))])
    with pytest.raises(EnvelopeError, match="1 bytes follow the record"):
        records.of_rejected(record + b"x")
