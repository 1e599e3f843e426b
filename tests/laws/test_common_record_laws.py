"""Laws of the reader of many records at once: it says what the reader of one says, or leaves a record to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, WireIdKind
from hopwatch.probes.contract.common_records import MAX_COMMON_BYTES, MIN_RECORDS, read_common_records
from tests.support.batches import TWO_PASSED, batches, record_of
from tests.support.reading_together import read_together

LABELS: Final = [{}, {"host": "a"}, {"host": "b" * 64, "zone": "é"}, {str(at): "x" * at for at in range(8)}]


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """Draw a record of which some bytes are others, are missing, or are too many."""
    record = bytearray(envelope.encode(draw(batches())))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(record) - 1))
        change = draw(st.sampled_from(["other", "less", "more"]))
        byte = draw(st.sampled_from([0, 1, 2, 127, 128, 255]) | st.integers(0, 255))
        record[at : at + (change != "more")] = b"" if change == "less" and len(record) > 1 else bytes([byte])
    return bytes(record)


ANY_RECORD = st.one_of(
    batches().map(envelope.encode),
    batches().map(lambda batch: record_of(batch, version=1)),
    broken(),
    st.binary(max_size=40),
)


@given(st.lists(ANY_RECORD, max_size=8))
def test_many_records_are_read_as_each_is(records: list[bytes]) -> None:
    """A record that is read with others has the same fields, and one that breaks the wire is never read with others."""
    for together, alone in read_together(records):
        assert together is None or together == alone


@given(st.lists(batches(), min_size=1, max_size=5), st.sampled_from(LABELS), st.integers(-(2**62), 2**62 - 1))
def test_what_most_records_are_is_read_together(drawn: list[Batch], labels: dict[str, str], moment_us: int) -> None:
    """No small record is left to the reader of one that has stamps, and neither reasons, nor drops, nor counts."""
    said: dict[str, Any] = {"labels": labels, "reasons": (), "reason": b"", "drops": ()}
    said |= {
        "epoch_us": moment_us,
        "sent_at_us": moment_us,
        "complete_through_us": moment_us,
        "seq": abs(moment_us) // 2,
    }
    minute = moment_us // 120_000 * 60_000
    stamped = [replace(batch, **said, window_start_ms=minute, lag_in_us=bytes(8 * batch.count)) for batch in drawn]
    records = [record for record in map(envelope.encode, stamped) if len(record) <= MAX_COMMON_BYTES]
    assert all(together == alone for together, alone in read_together(records))


def test_texts_of_ids_are_read_together() -> None:
    """The ends of the texts of a record have nothing to do with those of the record before it."""
    texts: dict[str, Any] = {
        "id_kind": WireIdKind.TEXT,
        "id_texts": b"abc",
        "id_text_ends": np.array([1, 3], "<u4").tobytes(),
    }
    for together, alone in read_together([envelope.encode(replace(TWO_PASSED, **texts))] * 3):
        assert together == alone


def test_few_records_are_left_to_the_reader_of_one() -> None:
    """For fewer than 32 records the arrays would cost more than they save."""
    record = envelope.encode(TWO_PASSED)
    for count in (0, MIN_RECORDS - 1, MIN_RECORDS):
        starts = np.arange(count) * len(record)
        read = read_common_records(record * count, starts, starts + len(record))
        assert [view is not None for view in read] == [count == MIN_RECORDS] * count
