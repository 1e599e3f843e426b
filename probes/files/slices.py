"""Account of a server whose files are slices of its time: which of them have come.

The files themselves say nothing of each other. The account is a probe instance of its own, without observations: its
epoch is the start of the first slice, and slice ``i`` has the numbers ``2i``, which completes all before the slice, and
``2i + 1``, which completes it. So a slice that never comes, or is cut, is a hole of exactly its span, until it comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hopwatch.probes.contract import envelope
from hopwatch.probes.contract.batch import Batch, BatchKind
from hopwatch.probes.contract.limits import WINDOW_MS, WINDOW_US
from hopwatch.probes.files.file_batches import TimedRecord, build_labels
from hopwatch.probes.instance import ProbeInstance
from hopwatch.probes.taps.errors import TapUsageError

_UNITS_US: Final = {"m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


@dataclass(frozen=True, slots=True)
class Slices:
    """Slices of equal length, the first from ``start_us``; µs."""

    start_us: int
    length_us: int

    def find(self, moment_us: int) -> int | None:
        """Return the number of the slice that a moment lies in; None before the first."""
        return None if moment_us < self.start_us else (moment_us - self.start_us) // self.length_us

    @property
    def text(self) -> str:
        """Return the slices as a text."""
        return f"{self.start_us}/{self.length_us}"


def parse_slices(text: str) -> Slices:
    """Parse slices such as ``2026-11-21T00:00Z/15m``.

    Raises:
        TapUsageError: it is none.
    """
    start, _, length = text.rpartition("/")
    told = "--slices is START/LENGTH, such as 2026-11-21T00:00Z/15m, with a zone and whole minutes"
    try:
        begin = datetime.fromisoformat(start)
        span_us = int(length[:-1]) * _UNITS_US[length[-1]]
        if begin.tzinfo is None:
            raise ValueError("no zone")  # noqa: TRY301 - one way for all that is wrong
        start_us = (begin - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e6
    except (ValueError, KeyError, IndexError):
        raise TapUsageError(f"{told}; got {text!r:.60}") from None
    if span_us <= 0 or start_us <= 0 or start_us % WINDOW_US:
        raise TapUsageError(f"{told}; got {text!r:.60}")
    return Slices(int(start_us), span_us)


@dataclass(frozen=True, slots=True)
class SliceAccount:
    """Account of one server's slices at a node."""

    stream: str
    node: str
    server: str
    slices: Slices

    @property
    def instance(self) -> ProbeInstance:
        """Return the instance whose batches these are."""
        return ProbeInstance(self.stream, self.node, self.server, self.slices.start_us, build_labels(self.server))

    def build(self, number: int, *, is_whole: bool) -> Iterator[tuple[int, TimedRecord]]:
        """Yield the batches of a slice, with their numbers: its begin, and its end if it is whole."""
        yield 2 * number, self.build_begin(number)
        if is_whole:
            end_us = self._find_start_us(number + 1)
            yield 2 * number + 1, self._build(2 * number + 1, BatchKind.HEARTBEAT, end_us - 1, end_us, end_us)

    def build_begin(self, number: int) -> TimedRecord:
        """Return the batch that completes all before a slice."""
        start_us = self._find_start_us(number)
        # The first is the hello, which was sent when the first slice began.
        sent_us = start_us if number == 0 else start_us - 1
        return self._build(2 * number, BatchKind.HEARTBEAT, sent_us, start_us - 1, start_us)

    def build_bye(self, number: int) -> TimedRecord:
        """Return the bye behind the begin of a slice, which never comes."""
        start_us = self._find_start_us(number)
        return self._build(2 * number + 1, BatchKind.BYE, start_us - 1, start_us, start_us)

    def _find_start_us(self, number: int) -> int:
        return self.slices.start_us + number * self.slices.length_us

    def _build(self, seq: int, kind: BatchKind, sent_us: int, through_us: int, arrival_us: int) -> TimedRecord:
        instance = self.instance
        minute_ms = sent_us // WINDOW_US * WINDOW_MS
        batch = Batch(
            instance.probe, instance.epoch_us, seq, kind, self.stream, self.node, minute_ms, sent_us, through_us,
            labels=instance.labels,
        )  # fmt: skip
        return TimedRecord(envelope.encode(batch), arrival_us)


NumberedRecord = tuple[ProbeInstance, int, TimedRecord]


@dataclass(slots=True)
class SliceAccounts:
    """Accounts of all servers at a node; each reaches as far as the latest slice that has come of any.

    So the last slices of a server are missed as those in the middle are. ``reached`` has the latest slice of each
    server, -1 of one of which none has come.
    """

    stream: str
    node: str
    slices: Slices
    reached: dict[str, int] = field(default_factory=dict)

    def note(self, server: str, number: int) -> None:
        """Note that a slice of a server has come, or that it is to be missed."""
        self.reached[server] = max(number, self.reached.get(server, number))

    def build_slice(self, server: str, number: int, *, is_whole: bool) -> Iterator[NumberedRecord]:
        """Yield the batches of a slice that has come, and those by which all other accounts reach as far."""
        self.note(server, number)
        account = self._open(server)
        for seq, timed in account.build(number, is_whole=is_whole):
            yield account.instance, seq, timed
        latest = max(self.reached.values())
        for behind in [name for name, reached in self.reached.items() if reached < latest]:
            self.reached[behind] = latest
            account = self._open(behind)
            yield account.instance, 2 * (latest + 1), account.build_begin(latest + 1)

    def build_end(self) -> Iterator[NumberedRecord]:
        """Yield the byes of all accounts, behind the latest slice."""
        latest = max(self.reached.values(), default=-1)
        for server in self.reached:
            account = self._open(server)
            yield account.instance, 2 * (latest + 1), account.build_begin(latest + 1)
            yield account.instance, 2 * (latest + 1) + 1, account.build_bye(latest + 1)

    def _open(self, server: str) -> SliceAccount:
        return SliceAccount(self.stream, self.node, server, self.slices)
