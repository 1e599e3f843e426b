"""Laws of the gate's own records: each is read as it was written, and none is taken for another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.gate import records
from hopwatch.gate.codec import EnvelopeError
from hopwatch.gate.records import EnteredRecord, RejectedRecord, ReplayedRecord
from hopwatch.probes.http.problems import Fault

IDS = st.binary(min_size=16, max_size=16)
MOMENTS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text()
ENTERED = st.builds(EnteredRecord, TEXTS, IDS, MOMENTS, MOMENTS, st.binary())
FAULTS = st.lists(st.builds(Fault, TEXTS, TEXTS), max_size=3).map(tuple)
REJECTED = st.builds(RejectedRecord, TEXTS, IDS, MOMENTS, MOMENTS, TEXTS, st.binary(), FAULTS, is_held=st.booleans())
REPLAYED = st.builds(ReplayedRecord, IDS, MOMENTS)


@given(ENTERED)
def test_an_event_in_a_spool_is_read_as_it_was_written(entered: EnteredRecord) -> None:
    """Its bytes too."""
    assert EnteredRecord.decode(entered.encode()) == entered


@given(REJECTED | REPLAYED)
def test_what_was_rejected_is_read_as_it_was_written(one: RejectedRecord | ReplayedRecord) -> None:
    """With its reasons; and that it was replayed."""
    assert records.decode_rejected(one.encode()) == one


@given(ENTERED, REJECTED)
def test_none_is_taken_for_another(entered: EnteredRecord, rejected: RejectedRecord) -> None:
    """The first 33 bytes tell them apart."""
    with pytest.raises(
        EnvelopeError, match="an event that was rejected begins with 81 and 32 bytes of fingerprint, got"
    ):
        records.decode_rejected(entered.encode())
    with pytest.raises(EnvelopeError, match="an event that entered begins with 81 and 32 bytes of fingerprint, got"):
        EnteredRecord.decode(rejected.encode())


@given(REJECTED, st.data())
def test_a_record_that_was_cut_is_none(rejected: RejectedRecord, data: st.DataObject) -> None:
    """Nor is one with bytes behind it."""
    record = rejected.encode()
    with pytest.raises(EnvelopeError):
        records.decode_rejected(record[: data.draw(st.integers(0, len(record) - 1))])
    with pytest.raises(EnvelopeError, match="1 bytes follow the record"):
        records.decode_rejected(record + b"x")
