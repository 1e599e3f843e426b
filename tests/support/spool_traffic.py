"""Seeded traffic of a small pipeline, written as spool segments with their arrival times."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.limits import MONITOR_STREAM
from hopwatch.probes.contract.segment import MAGIC, encode_frame

MINUTE_US: Final = 60_000_000
START_US: Final = 1_760_000_040_000_000
BATCH_S: Final = 5
NODES: Final = ("ingest", "router", "norm", "connector")


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment to be: where it goes, what is in it, when it arrived."""

    name: str
    content: bytes
    arrival_us: int

    def write(self, spool: Path) -> Path:
        """Write it as a probe would: under another name first, so that no reader sees half of it."""
        path = spool / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        open_path = path.with_suffix(".open")
        open_path.write_bytes(self.content)
        os.utime(open_path, ns=(self.arrival_us * 1_000, self.arrival_us * 1_000))
        return open_path.rename(path)


@dataclass
class _Probe:
    stream: str
    node: str
    seq: int = 0
    segments: list[Segment] = field(default_factory=list)

    def send(self, now_us: int, **fields: object) -> None:
        batch = Batch(
            "a-probe", START_US, self.seq, **{"kind": BatchKind.OBSERVATIONS} | fields,  # type: ignore[arg-type]
            stream=self.stream, node=self.node, sent_at_us=now_us, complete_through_us=now_us,
        )  # fmt: skip
        self.seq += 1
        name = f"probe.{self.stream}.{self.node}/{len(self.segments):010d}.seg"
        self.segments.append(Segment(name, MAGIC + encode_frame(encode(batch)), now_us + 1_000_000))


def traffic(seed: int, *, streams: int = 2, minutes: int = 8, a_second: int = 40, loss: float = 0.02) -> list[Segment]:
    """Return the segments of ``streams`` chains of four nodes, in order of arrival, with seeded losses.

    All probes say bye; a last heartbeat of a pulse moves the watermark past the judgement of the last window.
    """
    chance, segments = random.Random(seed), []
    for number in range(streams):
        probes = [_Probe(f"s{number}", node) for node in NODES]
        for second in range(0, minutes * 60, BATCH_S):
            _five_seconds(probes, START_US + second * 1_000_000, a_second * BATCH_S, loss, chance)
        end_us = START_US + (minutes * 60 + 1) * 1_000_000
        for probe in probes:
            minute_ms = end_us // MINUTE_US * 60_000
            probe.send(end_us, kind=BatchKind.BYE, window_start_ms=minute_ms)
            segments += probe.segments
    return sorted(
        [*segments, pulse(START_US + (minutes + 5) * MINUTE_US)], key=lambda segment: (segment.arrival_us, segment.name)
    )


def pulse(at_us: int, node: str = "monitor") -> Segment:
    """Return a segment with a heartbeat of a monitor's pulse: it moves the watermark."""
    probe = _Probe(MONITOR_STREAM, node)
    probe.send(at_us, kind=BatchKind.HEARTBEAT, window_start_ms=at_us // MINUTE_US * 60_000)
    return probe.segments[0]


def _five_seconds(probes: list[_Probe], from_us: int, count: int, loss: float, chance: random.Random) -> None:
    ids = np.frombuffer(chance.randbytes(16 * count), "V16")
    offsets = np.sort(np.frombuffer(chance.randbytes(4 * count), "<u4") % (BATCH_S * 1_000_000))
    lag_us = np.zeros(count, np.int64)
    for probe in probes:
        lag_in = lag_us + 1_000 + np.frombuffer(chance.randbytes(2 * len(ids)), "<u2")
        lag_us = lag_in + 500
        probe.send(
            from_us + BATCH_S * 1_000_000,
            window_start_ms=from_us // MINUTE_US * 60_000,
            count=len(ids),
            message_ids=ids.tobytes(),
            event_offset_us=(from_us % MINUTE_US + offsets).astype("<u4").tobytes(),
            lag_in_us=lag_in.astype("<i8").tobytes(),
            lag_out_us=lag_us.astype("<i8").tobytes(),
        )
        stays = np.array([chance.random() >= loss for _ in range(len(ids))])
        ids, offsets, lag_us = ids[stays], offsets[stays], lag_us[stays]


def config(
    spool: Path, workdir: Path, streams: int = 2, *, store_url: str = "", retry_for: str = "10m", deadline: str = ""
) -> str:
    """Return a configuration for the traffic; the monitor's own pulse, which lives in our days, stays out of it."""
    line = f'deadline = "{deadline}"\n' if deadline else ""
    tables = "".join(
        f'[streams.s{n}]\npath = "{" -> ".join(NODES)}"\ntransit = "20s"\nsettle = "15s"\n{line}'
        for n in range(streams)
    )
    return (
        f'[transport]\nurl = "spool:{spool}"\n'
        f'[store]\nurl = "{store_url or f"sqlite:///{workdir}/hopwatch.db"}"\nretry_for = "{retry_for}"\n'
        f'[monitor]\nworkdir = "{workdir / "work"}"\ntrigger = "1s"\npulse = "1h"\n{tables}'
    )


def rest(seconds: float) -> Iterator[None]:
    """Yield until that many seconds have passed, more and more seldom; the caller waits for what it looks for."""
    begun_s = time.monotonic()
    while (waited_s := time.monotonic() - begun_s) < seconds:
        yield
        time.sleep(min(max(0.05, waited_s * 0.1), 1.0))
