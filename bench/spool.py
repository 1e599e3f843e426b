"""Work as a spool of segments: what real probes would have left, arrival times and books included."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path
from typing import Any, Final

from bench.work import LABELS, NODES, TERMS, Block, Work, start_ms, stream_name
from hopwatch.monitor import pulse
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.limits import MONITOR_STREAM, WINDOW_MS
from hopwatch.probes.contract.segment import MAGIC, MAX_SEGMENT_BYTES, SEGMENT_SUFFIX, encode_frame

PROBE: Final = "bench"
FLUSH_US: Final = 500_000
"""How long after its last stamp a batch is sent, and after that a segment is whole."""
BYE_US: Final = 2_000_000


@dataclass(slots=True)
class SpoolInstance:
    """One probe instance, and the segment it is at; ``arrivals_ms`` are those taken by any of them."""

    folder: Path
    stream: str
    node: str
    epoch_us: int
    arrivals_ms: set[int]
    segment_us: int
    seq: int = 0
    segments: int = 0
    since_us: int = 0
    file: BufferedWriter | None = None
    size: int = 0
    last_sent_us: int = 0
    observations: int = 0
    written: list[tuple[int, int]] = field(default_factory=list)

    def send(self, sent_us: int, window_start_ms: int, **fields: Any) -> None:  # noqa: ANN401 - a batch's own fields
        """Write a batch into the open segment; the segment before is closed when it is full or old enough."""
        batch = Batch(
            probe=PROBE, epoch_us=self.epoch_us, seq=self.seq, stream=self.stream, node=self.node,
            window_start_ms=window_start_ms, sent_at_us=sent_us, **fields,
        )  # fmt: skip
        framed = encode_frame(encode(batch))
        is_old = sent_us - self.since_us >= self.segment_us
        if self.file and (is_old or self.size + len(framed) > MAX_SEGMENT_BYTES):
            self.close()
        if self.file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.file = (self.folder / f"{self.segments:010d}{SEGMENT_SUFFIX}").open("wb")
            self.size, self.since_us = self.file.write(MAGIC), sent_us
        self.size += self.file.write(framed)
        self.seq += 1
        self.last_sent_us = max(self.last_sent_us, sent_us)
        self.observations += batch.count

    def close(self) -> None:
        """End the segment: it arrives now, at a millisecond of its own, so that the order of arrival is one."""
        if self.file is None:
            return
        self.file.close()
        arrival_ms = (self.last_sent_us + FLUSH_US) // 1_000
        while arrival_ms in self.arrivals_ms:
            arrival_ms += 1
        self.arrivals_ms.add(arrival_ms)
        os.utime(self.file.name, ns=(arrival_ms * 1_000_000, arrival_ms * 1_000_000))
        self.written.append((arrival_ms, self.observations))
        self.file, self.observations = None, 0
        self.segments += 1


class Writer:
    """Writes blocks as segments below a folder; every probe says bye at the end, and the monitor's pulse goes on."""

    def __init__(self, work: Work, folder: Path) -> None:
        """Make the probe instances; nothing is written yet."""
        self.work = work
        self.arrivals_ms: set[int] = set()
        segment_us = work.segment_s * 1_000_000
        epoch_us = start_ms(0) * 1_000 - 1
        self.instances = {
            (stream, node): SpoolInstance(
                folder / f"{stream_name(stream)}.{name}",
                stream_name(stream),
                name,
                epoch_us,
                self.arrivals_ms,
                segment_us,
            )
            for stream in range(work.streams)
            for node, name in enumerate(NODES)
        }
        self.pulse = SpoolInstance(folder / "pulse", MONITOR_STREAM, pulse.NODE, epoch_us, self.arrivals_ms, segment_us)

    def write(self, block: Block) -> None:
        """Write one node's observations of one window, in batches."""
        instance, window_ms = self.instances[block.stream, block.node], start_ms(block.window)
        names = LABELS[: self.work.labels]
        for first in range(0, len(block.message_ids), self.work.batch):
            part = slice(first, first + self.work.batch)
            # What comes later has a later event time, and no stamp is before its event.
            complete_us = window_ms * 1_000 + int(block.event_offset_us[part][-1])
            instance.send(
                complete_us + int(block.lag_out_us[part].max()) + FLUSH_US,
                window_ms,
                kind=BatchKind.OBSERVATIONS,
                complete_through_us=complete_us,
                count=len(block.message_ids[part]),
                message_ids=block.message_ids[part].tobytes(),
                event_offset_us=block.event_offset_us[part].astype("<u4").tobytes(),
                lag_in_us=block.lag_in_us[part].astype("<i8").tobytes(),
                lag_out_us=block.lag_out_us[part].astype("<i8").tobytes(),
                labels={name: str(instance.seq % values) for name, values in names},
            )

    def close(self) -> list[int]:
        """End all; return the observations of each segment, in order of arrival."""
        end_us = self.work.end_us
        for instance in self.instances.values():
            write_record(instance, BatchKind.BYE, max(end_us, instance.last_sent_us) + BYE_US)
        last_us = max(self.arrivals_ms) * 1_000
        # The pulse that shows that transit and settle of all that was sighted have passed.
        write_record(self.pulse, BatchKind.HEARTBEAT, last_us + TERMS.transit_us + TERMS.settle_us + BYE_US)
        return [observations for _, observations in sorted(_all_written([*self.instances.values(), self.pulse]))]


def write_record(instance: SpoolInstance, kind: BatchKind, moment_us: int) -> None:
    """Send a batch without observations, and end the segment with it."""
    minute_ms = moment_us // 1_000 // WINDOW_MS * WINDOW_MS
    instance.send(moment_us, minute_ms, kind=kind, complete_through_us=moment_us)
    instance.close()


def _all_written(instances: Iterable[SpoolInstance]) -> Iterable[tuple[int, int]]:
    for instance in instances:
        yield from instance.written
