"""Reader of all batches in the spool of a run."""

from __future__ import annotations

from hopwatch.demo.layout import Layout
from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.contract.envelope import decode
from hopwatch.probes.contract.segment import read_frames


def read_spool(layout: Layout) -> list[Batch]:
    """Return every batch that is in the spool."""
    segments = [path.read_bytes() for path in sorted(layout.spool.rglob("*.seg"))]
    return [decode(data[frame.start : frame.end]) for data in segments for frame in read_frames(data)]
