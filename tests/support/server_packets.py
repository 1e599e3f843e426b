"""Ids that leave the servers of a fleet, and its packets, minute by minute: late, twice, or never."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.segment import FORWARDED_RECORDS, MAGIC, encode_frame
from hopwatch.probes.probe import Probe
from hopwatch.probes.taps.http.packets import parse_packet
from hopwatch.probes.testing import ManualClock, MemorySink
from tests.support.made_files import Row
from tests.support.server_files import LATE, SLICE_MS, SPAN_MS, START_MS, TWICE, Fleet

MINUTE_MS: Final = 60_000
MINUTES: Final = SPAN_MS // MINUTE_MS
SILENT: Final = 2 * SLICE_MS // MINUTE_MS
"""Last packets of a server that come late, beside its bye: it is cut off for longer than an instance may be silent."""
NEVER: Final = 0.0005
"""Share of the packets that never come."""
LATEST_MS: Final = 20_000
"""Time within which a packet comes that is not late."""


@dataclass(frozen=True)
class ServerPacket:
    """Record of a server, by its number, and when it was sent and comes; the one behind its last minute is a bye."""

    server: str
    number: int
    record: bytes
    sent_ms: int
    arrival_ms: int


def by_minute(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    """Return rows by server and minute."""
    found = defaultdict(list)
    for row in rows:
        found[row["server"], (row["at"] - START_MS) // MINUTE_MS].append(row)
    return found


def write_departures(sent: list[Row], spool: Path) -> None:
    """Write into a spool the ids that the probes of all servers saw leave, as they come at the end of each minute."""
    rows, said = by_minute(sent), defaultdict[int, list[bytes]](list)
    for server in sorted({row["server"] for row in sent}):
        clock, sink = ManualClock(START_MS * 1_000), MemorySink()
        probe = Probe(
            "flights", "server", sink, probe=server, clock=clock, strict=True, flush_every_s=3_600.0,
            heartbeat_every_s=3_600.0, close_on_sigterm=False,
        )  # fmt: skip
        for minute in range(MINUTES):
            # In the minute that ends, so that a bye makes no window behind the last one.
            clock.us = (START_MS + (minute + 1) * MINUTE_MS - 1) * 1_000
            now = rows[server, minute]
            if now:
                probe.departed_many([row["id"] for row in now], np.array([row["at"] * 1_000 for row in now]))
            probe.flush()
            said[minute] += sink.records
            sink.records.clear()
        probe.close()
        said[MINUTES - 1] += sink.records
    for minute, records in said.items():
        write_records(spool, f"server-{minute}", records, START_MS + (minute + 1) * MINUTE_MS)


def write_records(spool: Path, name: str, records: list[bytes], arrival_ms: int) -> None:
    """Write a segment of records that were posted, as they came at a moment."""
    path = spool / FORWARDED_RECORDS / f"{name}.seg"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".open")
    part.write_bytes(MAGIC + b"".join(map(encode_frame, records)))
    os.utime(part, ns=(arrival_ms * 10**6, arrival_ms * 10**6))
    part.rename(path)


def make_packets(sent: list[Row], dice: Random) -> tuple[list[ServerPacket], list[ServerPacket]]:
    """Return the packets that come, in the order in which they do, and those that never come."""
    servers = sorted({row["server"] for row in sent})
    packets = list(_post(servers, by_minute(sent), dice))
    # Those of the time whose files come late, of the same server: nothing comes behind by which they would be missed.
    silent = [packet for packet in packets if packet.server == servers[-1]][-SILENT - 1 :]
    # Of that time all else comes: else that would tell that it is not known.
    usual = [packet for packet in packets if packet.number < MINUTES - SILENT]
    dice.shuffle(usual)
    counts = (max(1, round(share * len(packets))) for share in (LATE, NEVER, TWICE))
    lates, nevers, again = ([usual.pop() for _ in range(count)] for count in counts)
    in_time = [packet for packet in packets if packet not in silent + lates + nevers]
    come = [*in_time, *(_late(one, dice) for one in (*silent, *lates, *again))]
    return sorted(come, key=lambda packet: packet.arrival_ms), nevers


def _late(packet: ServerPacket, dice: Random) -> ServerPacket:
    # Behind the moment at which all windows were judged.
    return replace(packet, arrival_ms=packet.arrival_ms + dice.randrange(9_000_000, 21_600_000))


def _post(servers: list[str], rows: dict[tuple[str, int], list[Row]], dice: Random) -> Iterator[ServerPacket]:
    for server in servers:
        for minute in range(MINUTES):
            arrival_ms = START_MS + (minute + 1) * MINUTE_MS + dice.randrange(LATEST_MS)
            body = {
                "stream": "flights", "node": "packet", "server": server, "started": START_MS * 1_000, "number": minute,
                "window_start": (START_MS + minute * MINUTE_MS) * 1_000,
                "counts": [{"ids": [row["id"] for row in rows[server, minute]]}],
            }  # fmt: skip
            record = parse_packet(json.dumps(body).encode(), arrival_ms * 1_000)
            yield ServerPacket(server, minute, record, arrival_ms, arrival_ms)
        end_ms = START_MS + SPAN_MS
        bye = Batch(
            server, START_MS * 1_000, MINUTES, BatchKind.BYE, "flights", "packet", end_ms - MINUTE_MS,
            end_ms * 1_000, end_ms * 1_000,
        )  # fmt: skip
        yield ServerPacket(server, MINUTES, envelope.encode(bye), end_ms, end_ms + LATEST_MS)


def find_packet_gaps(packets: Iterable[ServerPacket], now_ms: int) -> list[tuple[int, int]]:
    """Return the spans in which packets have not told all by a moment, ms: until the next that has come was sent.

    A server without a later one may hold what it counted for ten minutes.
    """
    came = defaultdict[str, dict[int, ServerPacket]](dict)
    for packet in packets:
        if packet.arrival_ms <= now_ms:
            came[packet.server].setdefault(packet.number, packet)
    gaps = set()
    for numbers in came.values():
        last = max(numbers)
        for number in set(range(last)) - numbers.keys():
            behind = numbers[min(other for other in numbers if other > number)]
            gaps.add((START_MS + number * MINUTE_MS, behind.sent_ms))
        if last < MINUTES:
            through_ms = START_MS + (last + 1) * MINUTE_MS
            gaps.add((through_ms, max(through_ms, *(one.arrival_ms for one in numbers.values())) + 10 * MINUTE_MS))
    return sorted(gaps)


class ServerTruth:
    """The truth of each server in each minute: how much left it, which of that is in no file, and what has come."""

    def __init__(self, fleet: Fleet, packets: list[ServerPacket]) -> None:
        """Count what left each server."""
        self._fleet, self._packets = fleet, packets
        rows = by_minute(fleet.sent)
        self._left = {cell: len(of_cell) for cell, of_cell in rows.items()}
        self._gone = {cell: {row["id"] for row in of_cell} & fleet.dropped for cell, of_cell in rows.items()}
        self._servers = sorted({server for server, _ in rows})

    def tell(self, minute: int, now_ms: int) -> dict[str, Row | None]:
        """Return what a report says of the servers by a moment; None of one of whose file only a part has come.

        ``missing_ids`` are all that are missing.
        """
        slice_ = minute * MINUTE_MS // SLICE_MS
        files = [file for file in self._fleet.files if file.slice == slice_ and file.arrival_ms <= now_ms]
        whole = {file.server for file in files if file.is_whole}
        told = {one.server for one in self._packets if one.number == minute and one.arrival_ms <= now_ms}
        found: dict[str, Row | None] = dict.fromkeys(file.server for file in files if file.server not in whole)
        for server in self._servers:
            if server not in found and (server in told or (server, minute) in self._left):
                found[server] = self._tell_server((server, minute), has_told=server in told, has_file=server in whole)
        return found

    def _tell_server(self, cell: tuple[str, int], *, has_told: bool, has_file: bool) -> Row:
        left, gone = self._left.get(cell, 0), self._gone.get(cell, set())
        seen = left - len(gone) if has_file else 0
        count = left if has_told else None
        return {
            "probe": cell[0],
            "count": count,
            "departed": count,
            "left_before": left or None,
            "same_before": True if has_told and left else None,
            "seen_behind": seen or None,
            "same_behind": not gone if has_told and seen else None,
            "missing_behind": left - seen if left else None,
            "missing_ids": gone if has_file else None,
        }
