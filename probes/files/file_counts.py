"""Packets of a file: what its rows say that each server counted, by numbers that go by the minutes of the file.

A file of counts is taken whole or not at all: of one that was cut, and comes whole later, each count would be in both,
and they are added. A minute of a server without a row, or with one that cannot be read, is a hole of that minute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind, Metrics
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.files.count_rows import CountFault, CountReader, CountRow, format_moment
from hopwatch.probes.files.errors import UnreadableFileError
from hopwatch.probes.files.file_batches import FileEnd, TimedRecord
from hopwatch.probes.files.file_columns import CountMapping
from hopwatch.probes.files.rows import BadRows, RawColumns
from hopwatch.probes.instance import ProbeInstance

MAX_COUNTS: Final = 500_000
"""Counts of one file at most, which are in memory: those of 50 servers in a week."""
MAX_HOLES: Final = 1_000
"""Holes of one server that are told apart in one file; with more all of its minutes are one."""


class PacketNumbers(NamedTuple):
    """Numbers of the packets of one server, by the starts of their minutes, and of what is written at the end."""

    packets: tuple[tuple[int, int], ...]
    marks: tuple[tuple[int, int], ...]
    bye: int


def number_packets(starts_us: list[int], first_us: int, end_us: int, *, is_open: bool) -> PacketNumbers:
    """Number the packets of the minutes that there are, in order; the hello is 0.

    A hole leaves a number out, between two marks, each of which completes all before its moment. If what is missing may
    be of any minute (``is_open``) a number is left out behind them all, and without marks the hole reaches over them.
    """
    packets, marks, seq, through_us = [], [], 1, first_us
    for start_us in (*starts_us, end_us):
        if start_us > through_us:
            if through_us > first_us:
                marks.append((seq, through_us))
                seq += 1
            seq += 1
            if start_us < end_us:
                marks.append((seq, start_us))
                seq += 1
        if start_us < end_us:
            packets.append((seq, start_us))
            seq += 1
        through_us = start_us + WINDOW_US
    if is_open or len(marks) > 2 * MAX_HOLES:
        marks, seq = [], seq + 1
    return PacketNumbers(tuple(packets), tuple(marks), seq)


@dataclass(frozen=True, slots=True)
class ServerPackets:
    """Packets of one server in one file, of the minutes from ``instance.epoch_us`` to ``end_us``."""

    instance: ProbeInstance
    server: str
    packets: Mapping[int, tuple[Metrics, ...]]
    end_us: int
    stamp_middle_us: int | None
    """Middle of its minutes; None without any packet."""
    is_open: bool

    @property
    def end(self) -> FileEnd:
        """Return what the bye, and the marks before it, are made of."""
        numbers = self._number()
        return FileEnd(
            self.instance.probe, self.instance.epoch_us, self.server, numbers.bye, self.end_us - 1, numbers.marks
        )

    def finish(self) -> Iterator[TimedRecord]:
        """Yield the hello and the packets; they complete nothing, until a bye says so."""
        yield self._build(BatchKind.HEARTBEAT, 0, self.instance.epoch_us)
        for seq, start_us in self._number().packets:
            yield self._build(BatchKind.METRICS, seq, start_us, self.packets[start_us])

    def _number(self) -> PacketNumbers:
        return number_packets(sorted(self.packets), self.instance.epoch_us, self.end_us, is_open=self.is_open)

    def _build(self, kind: BatchKind, seq: int, start_us: int, metrics: tuple[Metrics, ...] = ()) -> TimedRecord:
        own, end_us = self.instance, start_us + WINDOW_US
        batch = Batch(
            own.probe, own.epoch_us, seq, kind, own.stream, own.node, start_us // WINDOW_US * WINDOW_MS, end_us - 1,
            own.epoch_us, labels=own.labels, metrics=metrics,
        )  # fmt: skip
        return TimedRecord(envelope.encode(batch), end_us)


@dataclass(slots=True)
class ServerCounts:
    """Counts of one server in the minutes of which nothing is missing, by stamp; ``broken`` are the other minutes."""

    packets: dict[int, tuple[Metrics, ...]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    is_open: bool = False
    """Whether what is missing may be of any minute."""

    def add(self, start_us: int, metrics: Metrics) -> Metrics:
        """Add a count, unless there is one of its minute and stamp already, and return the one that there is."""
        there = self.packets.get(start_us, ())
        known = next((one for one in there if one.stamp == metrics.stamp), None)
        if known is None and start_us not in self.broken:
            self.packets[start_us] = tuple(sorted((*there, metrics), key=attrgetter("stamp")))
        return known or metrics

    def break_minute(self, start_us: int) -> None:
        """Take a minute out, for something of it is missing."""
        self.packets.pop(start_us, None)
        self.broken.add(start_us)


class FileCounts:
    """Counts of one file, with what is wrong with its rows: how many are bad by reason, and the first of each."""

    def __init__(self, mapping: CountMapping, server: str) -> None:
        """Set the columns, and the server of all rows if no column names it."""
        self._reader = CountReader(mapping, server)
        self.servers: dict[str, ServerCounts] = {}
        self.bad: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self._rows = 0
        self._has_strangers = False

    @property
    def good(self) -> int:
        """Return the number of counts in the packets."""
        return sum(len(metrics) for server in self.servers.values() for metrics in server.packets.values())

    @property
    def span_us(self) -> tuple[int, int]:
        """Return where the first of all minutes begins and the last one ends."""
        starts_us = {start_us for server in self.servers.values() for start_us in (*server.packets, *server.broken)}
        return min(starts_us), max(starts_us) + WINDOW_US

    def add(self, raw: RawColumns | BadRows) -> None:
        """Add rows.

        Raises:
            MappingError: times have no zone.
            UnreadableFileError: there are too many, or the column of servers is none.
        """
        if isinstance(raw, BadRows):
            self._rows += raw.count
            self.bad[raw.reason] += raw.count
            self._has_strangers = True
            return
        for row in self._reader.read(raw):
            self._rows += 1
            if self._rows > MAX_COUNTS:
                raise UnreadableFileError(f"it has more than {MAX_COUNTS:,} rows of counts: split it by time")
            self._add(row)

    def is_open(self, server: str) -> bool:
        """Return whether what is missing of a server may be of any minute."""
        return self._has_strangers or self.servers[server].is_open

    def _add(self, row: CountRow) -> None:
        server = self.servers.setdefault(row.server, ServerCounts())
        if row.metrics is None or row.start_us is None:
            self._note_bad(str(row.fault), row.told)
            if row.start_us is None:
                server.is_open = True
            else:
                server.break_minute(row.start_us)
            return
        known = server.add(row.start_us, row.metrics)
        if known != row.metrics:
            what = f"{row.server or 'the server'!r:.90} counted {known.count:,} as {known.stamp.name.lower()}"
            told = f"{what} at {format_moment(row.start_us)}, and {row.metrics.count:,} or others here"
            self._note_bad(CountFault.TWO_COUNTS, told)
            server.break_minute(row.start_us)

    def _note_bad(self, fault: str, told: str) -> None:
        self.bad[fault] += 1
        self.examples.setdefault(fault, f"row {self._rows:,}: {told}")
