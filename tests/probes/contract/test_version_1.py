"""Segments that probes of version 1 wrote, kept as they were: they are read for ever."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import numpy as np

from hopwatch.monitor.kernel.tally import NEVER_US, Tally
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import Claims
from hopwatch.monitor.row_kinds import CLAIMS_ROW, SET_ASIDE_ROW
from hopwatch.monitor.spark import claim_reader
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract import envelope, segment
from hopwatch.probes.contract.batch import Batch, BatchKind, Drop, WireIdKind
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.testing import batch_observations
from hopwatch.testing import EPOCH_US, Observation

KEPT = Path(__file__).parent / "version1"
LOST: list[uuid.UUID | str | int] = [uuid.UUID("11112222-3333-4444-5555-666677770003"), "order-3", 102]
"""What left a and never came to b, as its owners call it."""
RULES = {
    "orders": StreamConfig(
        Pathway.parse("a -> b"), WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)
    )
}


def _batches() -> list[Batch]:
    found = []
    for path in sorted(KEPT.rglob("*.seg")):
        data = path.read_bytes()
        for frame in segment.read_frames(data):
            assert not frame.fault, frame
            found.append(envelope.decode(data[frame.start : frame.end]))
    return found


def test_every_record_says_what_it_said() -> None:
    """Kinds, numbers, reasons, drops, labels and stamps come out as they went in; of which kind ids are is unknown."""
    batches = _batches()
    told = [(batch.node, batch.seq, batch.kind, batch.count) for batch in batches]
    assert told == [
        ("a", 0, BatchKind.OBSERVATIONS, 13), ("a", 1, BatchKind.OBSERVATIONS, 1), ("a", 2, BatchKind.OBSERVATIONS, 40),
        ("a", 3, BatchKind.BYE, 0), ("b", 0, BatchKind.OBSERVATIONS, 48), ("b", 1, BatchKind.BYE, 0),
    ]  # fmt: skip
    assert {batch.id_kind for batch in batches} == {WireIdKind.UNKNOWN}
    assert batches[0].labels == {"host": "h1", "version": "1"}
    assert batches[1].drops == (Drop(EPOCH_US // 1_000, 1, "poison"),)
    stamps = batch_observations(batches[0])
    first = Observation(id_bytes(uuid.UUID("11112222-3333-4444-5555-666677770000")), EPOCH_US + 1_000_000, *_first(), 0)
    assert first in stamps
    filtered = next(one for one in stamps if one.message_id == id_bytes("order-test"))
    assert (filtered.outcome, filtered.reason) == (1, "test traffic")


def _first() -> tuple[int, int]:
    """Return when the first message came and left: the clock began a second late, and each took a millisecond."""
    return EPOCH_US + 1_000_000, EPOCH_US + 1_001_000


def tally_of(tmp_path: Path) -> Tally:
    """Return what the monitor makes of the window of the kept segments, as if they had just come."""
    shutil.copytree(KEPT, tmp_path / "spool")
    paths = sorted((tmp_path / "spool").rglob("*.seg"))
    for path in paths:
        at_ns = (EPOCH_US + 50_000_000) * 1_000
        os.utime(path, ns=(at_ns, at_ns))
    rows = list(decode_segments(map(str, paths), RULES))
    assert not [row for row in rows if row.kind == SET_ASIDE_ROW]
    claims = [
        Claims.unpack(row.payload)
        for row in rows
        if row.kind == CLAIMS_ROW and row.window_start_ms == EPOCH_US // 1_000
    ]
    return claim_reader.tally_claims(RULES["orders"], claims, EPOCH_US + 60_000_000)


def test_the_monitor_counts_what_they_tell(tmp_path: Path) -> None:
    """Of 52 messages that left a three never came to b, and these are the ones that it names."""
    tally = tally_of(tmp_path)
    assert tally.observations == 13 + 40 + 48
    lost = tally.lost(1, NEVER_US).message_ids
    assert {one.tobytes() for one in np.asarray(lost)} >= {id_bytes(one) for one in LOST}
    assert len(lost) == len(LOST) + 1, "16 bytes left a as well, and never came to b"
