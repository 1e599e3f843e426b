"""Records that are read together, however few they are, beside what the reader of one says of each."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch.probes.contract import common_records, envelope


def read_together(records: list[bytes]) -> list[tuple[envelope.RecordView | None, envelope.RecordView | str]]:
    """Return of each record what the reader of many says, and what the reader of one says or why it refuses."""
    buffer, ends = b"".join(records), np.cumsum([len(record) for record in records], dtype=np.int64)
    starts = ends - np.array([len(record) for record in records], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common_records, "MIN_RECORDS", 1)
        together = common_records.read_common_records(buffer, starts, ends)
    return [
        (view, _read_one(buffer, start, end))
        for view, start, end in zip(together, starts.tolist(), ends.tolist(), strict=True)
    ]


def _read_one(buffer: bytes, start: int, end: int) -> envelope.RecordView | str:
    try:
        view = envelope.read_record(buffer, start, end)
        envelope.check_values(buffer, view)
    except envelope.RecordError as error:
        return str(error)
    return view
