"""Flights of 2013 as the logs of servers, a file for each 15 minutes of each: late, twice, cut, of two schemas."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

import pyarrow.csv as pacsv

from hopwatch.demo.records import find_archive
from tests.support.made_files import Row, as_avro, as_csv, as_gzip, as_jsonl, as_parquet

SLICES: Final = 8
SLICE_MS: Final = 900_000
SPAN_MS: Final = SLICES * SLICE_MS
START_MS: Final = 1_370_044_800_000
"""2013-06-01T00:00Z: two hours of it have all the flights."""
CHANGE_MS: Final = START_MS + 3 * SLICE_MS + 7 * 60_000 + 30_000
"""Moment at which the schema changes, in the middle of a minute."""
DROPPED: Final = 37
LATE, TWICE, CUT = 0.03, 0.01, 0.001
"""Shares of the files."""
SERVER_PATTERN: Final = r"(server-\d+)/"
COLUMNS: Final = ("carrier", "flight", "tailnum", "distance")

Format = Callable[[list[Row]], bytes]
LINES: Final[tuple[Format, ...]] = (as_jsonl, lambda rows: as_gzip(as_jsonl(rows)))
"""Formats in which rows of two schemas can stand in one file."""


def _as_avro(rows: list[Row]) -> bytes:
    return as_avro([{"id": row["id"], "at": row["at"]} for row in rows])


FORMATS: Final[tuple[Format, ...]] = (*LINES, as_csv, as_parquet, _as_avro)


@dataclass(frozen=True)
class ServerFile:
    """File of one slice of a server, and when it comes."""

    server: str
    slice: int
    name: str
    data: bytes
    arrival_ms: int
    is_whole: bool = True

    @property
    def span_ms(self) -> tuple[int, int]:
        """Return begin and end of its slice."""
        begin_ms = START_MS + self.slice * SLICE_MS
        return begin_ms, begin_ms + SLICE_MS


@dataclass(frozen=True)
class Fleet:
    """Servers with what they sent, the ids that are in no file, and their files in the order in which they come."""

    sent: list[Row]
    dropped: frozenset[str]
    files: list[ServerFile]


def make_fleet(flights: int, servers: int, dice: Random) -> Fleet:
    """Make the servers of so many flights, each in some file of each of them but for those that are dropped."""
    sent = _read_flights(flights, servers)
    dropped = frozenset(row["id"] for row in dice.sample(sent, DROPPED))
    by_slice: dict[tuple[str, int], list[Row]] = {}
    for row in sent:
        if row["id"] not in dropped:
            by_slice.setdefault((row["server"], (row["at"] - START_MS) // SLICE_MS), []).append(row)
    assert len(by_slice) == servers * SLICES, "a server has no row in a slice"
    files = [_make_file(*key, rows, place, dice) for place, (key, rows) in enumerate(sorted(by_slice.items()))]
    dice.shuffle(files)
    return Fleet(sent, dropped, sorted(_disturb(files, dice), key=lambda file: file.arrival_ms))


def _read_flights(count: int, servers: int) -> list[Row]:
    with zipfile.ZipFile(find_archive()) as archive:
        table = pacsv.read_csv(io.BytesIO(archive.read("flights.csv"))).slice(0, count).select(COLUMNS)
    return [
        {
            "id": f"{row['carrier']}{row['flight']}-{row['tailnum']}-{number}",
            "at": START_MS + number * SPAN_MS // count,
            "server": f"server-{zlib.crc32(str(row['tailnum']).encode()) % servers:02d}",
            **row,
        }
        for number, row in enumerate(table.to_pylist())
    ]


def _make_file(server: str, slice_: int, rows: list[Row], place: int, dice: Random) -> ServerFile:
    end_ms = START_MS + (slice_ + 1) * SLICE_MS
    is_mixed = end_ms - SLICE_MS <= CHANGE_MS < end_ms
    formats = LINES if is_mixed else FORMATS
    data = formats[place % len(formats)]([_as_logged(row) for row in rows])
    return ServerFile(server, slice_, f"{server}/{slice_}", data, end_ms + dice.randrange(90_000))


def _as_logged(row: Row) -> Row:
    """Return a row as the server writes it: after the change with another order, type and set of fields."""
    if row["at"] < CHANGE_MS:
        return {"id": row["id"], "at": row["at"], "flight": row["flight"]}
    return {
        "distance": row["distance"],
        "flight": f"{row['carrier']} {row['flight']}",
        "at": row["at"],
        "id": row["id"],
    }


def _disturb(files: list[ServerFile], dice: Random) -> list[ServerFile]:
    """Let some files come hours late, some twice, and some cut at first and whole hours later."""

    def share(of: float) -> int:
        return max(1, round(of * len(files)))

    def late(file: ServerFile) -> ServerFile:
        return replace(file, arrival_ms=file.arrival_ms + dice.randrange(7_200_000, 21_600_000))

    # The last two of one server: nothing of it comes behind them by which they would be missed.
    lates = sorted(files, key=lambda file: (file.server, file.slice))[-2:]
    rest = [file for file in files if file not in lates]
    count = max(1, share(LATE) - len(lates))
    lates, rest = lates + rest[:count], rest[count:]
    # Of Parquet nothing is read without its end, and of a few rows in gzip too little.
    cut = [file for file in rest if file.data[:1] in {b"{", b"i"}][: share(CUT)]
    told = [late(file) for file in lates]
    told += [late(file) if file in cut else file for file in rest]
    told += [replace(file, name=f"{file.name}-cut", data=file.data[:-30], is_whole=False) for file in cut]
    again = [file for file in rest if file not in cut][: share(TWICE)]
    told += [replace(late(file), name=f"{file.name}-again") for file in again]
    return told


def find_gaps(fleet: Fleet, now_ms: int) -> list[tuple[int, int]]:
    """Return the spans of the files that should have come by a moment and have not, ms."""
    there = {(file.server, file.slice) for file in fleet.files if file.is_whole and file.arrival_ms <= now_ms}
    return sorted({file.span_ms for file in fleet.files if (file.server, file.slice) not in there})


def name_lost(report: dict[str, Any]) -> set[str]:
    """Return all ids that a report names as lost."""
    (stream,) = report["streams"]
    return {lost for window in stream["windows"] for node in window["nodes"] for lost in node["lost_ids"]}
