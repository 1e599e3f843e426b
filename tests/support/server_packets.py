"""What the servers of a fleet say from minute to minute: ids that leave them, and packets: late, twice, or never."""

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
NEVER: Final = 0.0005
"""Share of the packets that never come."""
LATEST_MS: Final = 20_000
"""Time within which a packet comes that is not late."""


@dataclass(frozen=True)
class ServerPacket:
    """Record that a server posts, by its number, and when it comes; the one behind its last minute is a bye."""

    server: str
    number: int
    record: bytes
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
    # The last of the server whose last files come late: nothing of it comes behind them by which they would be missed.
    lasts = [packet for packet in packets if packet.server == servers[-1]][-3:]
    # Of byes only that one is late: behind one that never came all would be open.
    usual = [packet for packet in packets if packet not in lasts and packet.number < MINUTES]
    dice.shuffle(usual)
    lates, usual = usual[: round(LATE * len(packets))], usual[round(LATE * len(packets)) :]
    nevers, usual = usual[: max(1, round(NEVER * len(packets)))], usual[max(1, round(NEVER * len(packets))) :]
    again = usual[: round(TWICE * len(packets))]
    byes = [packet for packet in packets if packet not in lasts and packet.number == MINUTES]
    come = [*byes, *usual, *(_late(one, dice) for one in (*lasts, *lates, *again))]
    return sorted(come, key=lambda packet: packet.arrival_ms), nevers


def _late(packet: ServerPacket, dice: Random) -> ServerPacket:
    return replace(packet, arrival_ms=packet.arrival_ms + dice.randrange(7_200_000, 21_600_000))


def _post(servers: list[str], rows: dict[tuple[str, int], list[Row]], dice: Random) -> Iterator[ServerPacket]:
    for server in servers:
        for minute in range(MINUTES):
            arrival_ms = START_MS + (minute + 1) * MINUTE_MS + dice.randrange(LATEST_MS)
            body = {
                "stream": "flights", "node": "packet", "server": server, "started": START_MS * 1_000, "number": minute,
                "window_start": (START_MS + minute * MINUTE_MS) * 1_000,
                "counts": [{"ids": [row["id"] for row in rows[server, minute]]}],
            }  # fmt: skip
            yield ServerPacket(server, minute, parse_packet(json.dumps(body).encode(), arrival_ms * 1_000), arrival_ms)
        end_ms = START_MS + SPAN_MS
        bye = Batch(
            server, START_MS * 1_000, MINUTES, BatchKind.BYE, "flights", "packet", end_ms - MINUTE_MS,
            end_ms * 1_000, end_ms * 1_000,
        )  # fmt: skip
        yield ServerPacket(server, MINUTES, envelope.encode(bye), end_ms + LATEST_MS)


def find_packet_gaps(packets: Iterable[ServerPacket], now_ms: int) -> list[tuple[int, int]]:
    """Return the spans in which packets have not told all by a moment, ms: to the next one of the server that came.

    A server without a later one may hold what it counted for ten minutes.
    """
    came = defaultdict[str, dict[int, int]](dict)
    for packet in packets:
        if packet.arrival_ms <= now_ms:
            came[packet.server].setdefault(packet.number, packet.arrival_ms)
    gaps = []
    for numbers in came.values():
        for number in range(MINUTES + 1):
            if number not in numbers:
                behind = [other for other in numbers if other > number]
                begin_ms = START_MS + number * MINUTE_MS
                gaps.append((begin_ms, numbers[min(behind)] if behind else begin_ms + 10 * MINUTE_MS))
    return sorted(set(gaps))


class ServerTruth:
    """What is true of each server in each minute: what left it, which of that is in no file, and what has come."""

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
