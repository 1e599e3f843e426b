"""Importer of files: each is read in blocks, and becomes the batches that its content decides."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from threading import Event
from typing import Final

import pyarrow as pa

from hopwatch.probes.contract.segment import FORWARDED_RECORDS
from hopwatch.probes.files.arrow_values import get_numbers
from hopwatch.probes.files.errors import CutError, MappingError, UnreadableFileError
from hopwatch.probes.files.file_batches import FileBatches, FileEnd, build_labels
from hopwatch.probes.files.file_columns import CountMapping, FileFormat, FileMapping
from hopwatch.probes.files.file_counts import FileCounts, ServerPackets
from hopwatch.probes.files.outputs import RecordOutput, RecordWriter
from hopwatch.probes.files.prefetch import prefetch
from hopwatch.probes.files.rows import GOOD, BadRows, RawColumns, RowColumns, build_bad_rows, read_rows
from hopwatch.probes.files.slices import SliceAccounts, Slices
from hopwatch.probes.files.source import ByteStream, SourceFile, describe_error, open_source
from hopwatch.probes.instance import ProbeInstance

MAX_SERVERS: Final = 4_096
"""Servers of one file at most: more is a column of something else."""
MAX_SERVER_CHARS: Final = 80
PEEK_BYTES: Final = 4_096
PARQUET: Final = b"PAR1"
AVRO: Final = b"Obj\x01"
BYE_SEGMENT: Final = 9_999_999_999
"""Number of the segment of a file's bye, behind all of its rows."""
DEFAULT_SERVER: Final = "files"
_Block = tuple[RawColumns | BadRows, int]
"""Rows, and how many bytes of the file were read for them."""
_COLUMN_ADVICE: Final = {
    FileMapping: "are --id, --id-as, --time and --time-unit right?",
    CountMapping: "are --counted, --time and --time-unit right?",
}
STOPPED: Final = "it was not read to its end: start again, which changes nothing that is there"


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """Plan of an import: the columns, and the place of the files in their servers' time."""

    stream: str
    node: str
    mapping: FileMapping | CountMapping
    slices: Slices | None = None
    bye: bool = False
    id_text: bool = True
    server: str = ""
    server_pattern: re.Pattern[str] | None = None
    servers: tuple[str, ...] = ()
    """Servers whose slices are missed though no file of theirs has come."""

    @property
    def text(self) -> str:
        """Return all that decides what the batches of a file are, beside its content."""
        return f"{self.mapping.text} {self.slices.text if self.slices else ''} {self.id_text}"

    @property
    def state_text(self) -> str:
        """Return all that decides what an import of files says."""
        pattern = self.server_pattern.pattern if self.server_pattern else ""
        return f"{self.text} {self.bye} {self.server} {pattern} {' '.join(self.servers)}".rstrip()

    def name_server(self, place: str) -> str:
        """Return the server of a file, as its path says it.

        Raises:
            UnreadableFileError: the pattern does not find one.
        """
        if self.server_pattern is None:
            return self.server
        found = self.server_pattern.search(place)
        if found is None:
            raise UnreadableFileError("--server-from finds no server in its path")
        return str(found[1] if found.re.groups else found[0])


@dataclass(slots=True)
class FileResult:
    """Result of one file: its rows, what was bad, and why it is not whole, if it is not."""

    name: str
    print: str = ""
    bytes: int = 0
    observations: int = 0
    schema: str = ""
    """Name of the schema in its header; empty of a format that has none."""
    bad: Counter[str] = field(default_factory=Counter)
    fault: str = ""
    note: str = ""
    slices: dict[str, int] = field(default_factory=dict)
    """Numbers of the slices that it is, by the accounts of its servers."""
    ends: list[FileEnd] = field(default_factory=list)
    """Ends of its servers' rows, whose byes are still to be written."""
    look: tuple[int, int] | None = None
    """Size and time of change before it was read; None of what has neither, such as a URL."""

    @property
    def is_whole(self) -> bool:
        """Return whether all of it was read and could be counted."""
        return not self.fault and not self.bad


class Importer:
    """Importer of files, one at a time."""

    def __init__(
        self, plan: ImportPlan, output: RecordOutput, report_bytes: Callable[[int], None] = lambda _: None
    ) -> None:
        """Set the plan and the output; ``report_bytes`` is told how far the present file was read."""
        self._plan, self._output, self._report = plan, output, report_bytes
        self._accounts = None if plan.slices is None else SliceAccounts(plan.stream, plan.node, plan.slices)
        self._ends: list[FileEnd] = []
        self._unplaced: set[str] = set()
        self.resume({shorten_server(server): -1 for server in plan.servers})

    def resume(self, slices: Mapping[str, int], ends: Iterable[FileEnd] = ()) -> None:
        """Take up accounts: their latest slices, and ends of files, as an import before noted them."""
        self._ends += ends
        if self._accounts is not None:
            for server, number in slices.items():
                self._accounts.note(server, number)

    def finish(self) -> None:
        """Write the byes, if the plan says that nothing follows and each file could be read.

        What is in one that could not would be shown as lost: other files would speak for its time.

        Raises:
            TapSourceError: the output cannot be written.
        """
        if not self._plan.bye or self._unplaced:
            return
        for numbered in self._accounts.build_end() if self._accounts is not None else ():
            self._output.write_numbered(*numbered)
        for end in self._ends:
            where = self._plan.stream, self._plan.node
            self._output.write_numbered(end.open_instance(*where), BYE_SEGMENT, *end.build_records(*where))
        self._ends.clear()

    def compute_print(self, source: SourceFile) -> tuple[str, int]:
        """Return the print of a file, as this plan reads it, and its size.

        Raises:
            UnreadableFileError: it cannot be read.
        """
        return source.compute_print(self._plan.text)

    def import_file(self, place: str, stop: Event) -> FileResult:
        """Import a file; what is wrong with it is in the result.

        Raises:
            MappingError: a column is not there, or times have no zone.
            TapSourceError: the output cannot be written.
        """
        result = FileResult(place.encode("utf-8", "backslashreplace").decode())
        try:
            if result.name != place:
                raise UnreadableFileError("its name is not UTF-8: rename it")  # noqa: TRY301 - one way for all that is wrong
            source = open_source(place)
            result.look = _stat(place)
            server = self._plan.name_server(place)
            # What begins the rows, and the modules that read them, come while the print is taken.
            with closing(prefetch(self._read(source, result))) as blocks:
                result.print, result.bytes = self.compute_print(source)
                if not result.bytes:
                    raise UnreadableFileError("it is empty")  # noqa: TRY301 - one way for all that is wrong
                self._import_rows(source, blocks, server, result, stop)
        except UnreadableFileError as error:
            result.fault = str(error)
        except MappingError as error:
            raise MappingError(f"{place}: {error}") from None
        if result.fault and not result.slices:
            self._unplaced.add(place)
        else:
            self._unplaced.discard(place)
        self._ends += result.ends
        return result

    def _import_rows(
        self, source: SourceFile, blocks: Iterator[_Block], server: str, result: FileResult, stop: Event
    ) -> None:
        mapping, around = self._plan.mapping, (self._plan, self._output, self._accounts, result)
        servers: _ServersOfIds | _ServersOfCounts = (
            _ServersOfCounts(*around, FileCounts(mapping, server), server)
            if isinstance(mapping, CountMapping)
            else _ServersOfIds(*around, mapping, server)
        )
        try:
            for raw, position in blocks:
                if stop.is_set():
                    raise CutError(STOPPED)  # noqa: TRY301 - one way for all that is wrong
                servers.add(raw)
                self._report(position)
        except (CutError, UnreadableFileError) as error:
            result.fault = str(error.args[0])
        if stop.is_set():
            # Its last batches are not written: nobody may take it for imported.
            result.fault = result.fault or STOPPED
            return
        if not result.fault and _stat(source.name) != result.look:
            result.fault = "it changed while it was read: import it again once it is finished"
        if not result.observations and not result.fault:
            told = ", ".join(f"{reason} {count:,}" for reason, count in sorted(result.bad.items()))
            result.fault = (
                f"none of its rows can be read: {told}: {_COLUMN_ADVICE[type(self._plan.mapping)]}"
                if told
                else "it has no rows"
            )
        servers.finish(is_whole=not result.fault)

    def _read(self, source: SourceFile, result: FileResult) -> Iterator[_Block]:
        """Yield the rows of a file, with how many of its bytes were read."""
        with source.opened() as file:
            stream, mapping = ByteStream(file), self._plan.mapping
            items: Iterator[RawColumns | BadRows]
            chosen = _detect_format(source) if mapping.format is FileFormat.AUTO else mapping.format
            if chosen is FileFormat.PARQUET:
                if stream.is_compressed:
                    raise UnreadableFileError("it is a compressed Parquet file: unpack it")
                from hopwatch.probes.files.table_rows import ParquetRows  # noqa: PLC0415 - each format when it comes

                table = ParquetRows(file, mapping)
                for rows in table.iter_tables():
                    yield rows, int(result.bytes * table.read_ratio)
                return
            if chosen is FileFormat.AVRO:
                from hopwatch.probes.files.avro_rows import read_avro_rows  # noqa: PLC0415 - its compiler takes a second

                items = read_avro_rows(stream, mapping, partial(setattr, result, "schema"))
            else:
                from hopwatch.probes.files.text_rows import read_text_rows  # noqa: PLC0415 - each format when it comes

                items = read_text_rows(stream, mapping, is_json=chosen is FileFormat.JSONL)
            for item in items:
                yield item, stream.position


class _Servers:
    """Servers of one file."""

    def __init__(
        self, plan: ImportPlan, output: RecordOutput, accounts: SliceAccounts | None, result: FileResult
    ) -> None:
        self._plan, self._output, self._accounts, self._result = plan, output, accounts, result
        self._writers: dict[str, RecordWriter] = {}

    def _name_probe(self, server: str) -> str:
        return f"{shorten_server(server)}-{self._result.print}"

    def _check_number(self, number: int) -> None:
        if number > MAX_SERVERS:
            raise MappingError(f"--server {self._plan.mapping.server} has more than {MAX_SERVERS:,} values")

    def _write_ends(self, servers: Mapping[str, FileBatches | ServerPackets], *, is_whole: bool) -> None:
        """Write the last batches of all servers, and their slices."""
        for server, batches in servers.items():
            for timed in batches.finish():
                self._writers[server].add(timed)
            if (end := batches.end) is None:
                continue
            if self._accounts is not None:
                # What else there is of a server is its account's to tell.
                for timed in end.build_records(self._plan.stream, self._plan.node):
                    self._writers[server].add(timed)
            elif self._plan.bye and is_whole:
                self._result.ends.append(end)
        for writer in dict.fromkeys(self._writers.values()):
            writer.close()
        for server, batches in servers.items():
            if self._accounts is not None and (middle_us := batches.stamp_middle_us) is not None:
                self._write_slice(self._accounts, server, middle_us, is_whole=is_whole)

    def _write_slice(self, accounts: SliceAccounts, server: str, middle_us: int, *, is_whole: bool) -> None:
        number, name = accounts.slices.find(middle_us), shorten_server(server)
        if number is None:
            told = "it lies before the first of --slices: nobody knows whether it is all of its time"
            self._result.note = "; ".join(filter(None, (self._result.note, told)))
            return
        self._result.slices[name] = number
        for numbered in accounts.build_slice(name, number, is_whole=is_whole):
            self._output.write_numbered(*numbered)


class _ServersOfCounts(_Servers):
    """Packets of the servers of one file, which are written at its end: those of a minute into one segment."""

    def __init__(  # noqa: PLR0913, PLR0917 - what one file needs
        self,
        plan: ImportPlan,
        output: RecordOutput,
        accounts: SliceAccounts | None,
        result: FileResult,
        counts: FileCounts,
        server: str,
    ) -> None:
        super().__init__(plan, output, accounts, result)
        self._counts, self._server = counts, server

    def add(self, raw: RawColumns | BadRows) -> None:
        """Add rows."""
        self._counts.add(raw)
        self._result.observations, self._result.bad = self._counts.good, self._counts.bad
        self._result.note = "; ".join(self._counts.examples.values())

    def finish(self, *, is_whole: bool) -> None:
        """Write the packets of all servers, and their slices; nothing of a file that is not whole."""
        if not is_whole:
            self._result.observations = 0
            return
        self._check_number(len(self._counts.servers))
        found = {server: self._open(server) for server in self._counts.servers}
        where = f"{self._plan.stream}.{self._plan.node}"
        name = ProbeInstance(FORWARDED_RECORDS, where, self._name_probe(self._server), self._counts.span_us[0])
        self._writers = dict.fromkeys(found, self._output.open_file(name))
        self._write_ends(found, is_whole=is_whole)

    def _open(self, server: str) -> ServerPackets:
        counts, slices = self._counts.servers[server].packets, self._plan.slices
        first_us, end_us = self._counts.span_us
        middle_us = sorted(counts)[len(counts) // 2] if counts else None
        if slices is not None and (number := slices.find(first_us if middle_us is None else middle_us)) is not None:
            start_us = slices.start_us + number * slices.length_us
            first_us, end_us = min(first_us, start_us), max(end_us, start_us + slices.length_us)
        probe, labels = self._name_probe(server), build_labels(server)
        instance = ProbeInstance(self._plan.stream, self._plan.node, probe, first_us, labels)
        return ServerPackets(instance, server, counts, end_us, middle_us, self._counts.is_open(server))


class _ServersOfIds(_Servers):
    """Batches of the servers of one file."""

    def __init__(  # noqa: PLR0913, PLR0917 - what one file needs
        self,
        plan: ImportPlan,
        output: RecordOutput,
        accounts: SliceAccounts | None,
        result: FileResult,
        mapping: FileMapping,
        server: str,
    ) -> None:
        super().__init__(plan, output, accounts, result)
        self._batches: dict[str, FileBatches] = {}
        self._mapping, self._last = mapping, server
        self._early: list[RowColumns] = []

    def add(self, raw: RawColumns | BadRows) -> None:
        """Add rows; bad ones of nobody are those of the server before, or of the first behind them."""
        self._add_rows(build_bad_rows(raw) if isinstance(raw, BadRows) else read_rows(raw, self._mapping))

    def _add_rows(self, rows: RowColumns) -> None:
        if rows.servers is None:
            if self._mapping.server and not self._batches:
                self._early.append(rows)
            else:
                self._add(self._last, rows)
            return
        try:
            names = rows.servers.cast(pa.string()).fill_null("").dictionary_encode()
        except pa.ArrowException as error:
            told = f"its column {self._mapping.server} names no servers ({describe_error(error)})"
            raise UnreadableFileError(told) from None
        places = get_numbers(names.indices, 0)
        for place, name in enumerate(names.dictionary.to_pylist()):
            own = rows.select((places == place).nonzero()[0])
            if name not in self._batches and not (own.faults == GOOD).any():
                self._add_rows(own)
                continue
            self._last = name
            for early in self._early:
                self._add(name, early)
            self._early.clear()
            self._add(name, own)

    def finish(self, *, is_whole: bool) -> None:
        """Write the last batches of all servers, and their slices."""
        for early in self._early:
            self._add(self._last, early)
        self._write_ends(self._batches, is_whole=is_whole)

    def _add(self, server: str, rows: RowColumns) -> None:
        batches = self._batches.get(server)
        if batches is None:
            self._check_number(len(self._batches) + 1)
            who = self._plan.stream, self._plan.node, self._name_probe(server), server
            batches = FileBatches(*who, id_text=self._plan.id_text, schema=self._result.schema)
            self._batches[server] = batches
        before = batches.observations
        for timed in batches.add(rows, self._result.bad):
            if server not in self._writers:
                assert batches.instance is not None  # noqa: S101 - it has begun
                self._writers[server] = self._output.open_file(batches.instance)
            self._writers[server].add(timed)
        self._result.observations += batches.observations - before


def shorten_server(server: str) -> str:
    """Return a server's name, short enough for that of a probe, and unlike that of any other."""
    if len(server) <= MAX_SERVER_CHARS:
        return server or DEFAULT_SERVER
    told = blake2b(server.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{server[:MAX_SERVER_CHARS]}~{told}"


def _detect_format(source: SourceFile) -> FileFormat:
    with source.opened() as file:
        stream = ByteStream(file)
        try:
            first = stream.read(PEEK_BYTES)
        except CutError as error:
            first = error.args[1]
    if first.startswith(PARQUET):
        return FileFormat.PARQUET
    if first.startswith(AVRO):
        return FileFormat.AVRO
    return FileFormat.JSONL if first.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" else FileFormat.CSV


def _stat(place: str) -> tuple[int, int] | None:
    try:
        found = os.stat(place)  # noqa: PTH116 - a place may be a URL
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
