"""``hopwatch import``: observations out of files: CSV, JSON lines, Parquet and Avro."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from hopwatch.cli import console, signals
from hopwatch.cli.entry import INTERRUPTED_EXIT_CODE
from hopwatch.cli.tap_errors import translate_tap_errors
from hopwatch.monitor.errors import ConfigurationError, TapDownError
from hopwatch.probes.contract.limits import NAME_PATTERN
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.sides import StampSide
from hopwatch.probes.values import IdFormat, TimeUnit

if TYPE_CHECKING:
    from rich.progress import Progress

    from hopwatch.probes.files.done_files import DoneFiles
    from hopwatch.probes.files.importer import FileResult, Importer, ImportPlan
    from hopwatch.probes.files.outputs import RecordOutput

FINDING_EXIT_CODE: Final = 1
SETTLE_EVERY_S: Final = 2.0
"""Interval at which what was written is made durable and the state is kept; a kill repeats at most so much."""

IdColumn = Annotated[str, typer.Option("--id", metavar="COLUMN", help="The column of the id, such as meta.id.")]
TimeColumn = Annotated[str, typer.Option("--time", metavar="COLUMN", help="The column of the event time.")]
Unit = Annotated[TimeUnit, typer.Option("--time-unit", help="How times are written; a timestamp column needs none.")]
Zone = Annotated[str | None, typer.Option("--zone", help="The zone of times that say none, such as UTC.")]
Stamp = Annotated[
    StampSide | None, typer.Option("--stamp", help="in (as a rule): the messages arrive at the node; out: they leave.")
]
IdAs = Annotated[IdFormat, typer.Option("--id-as", help="What the id is to be read as; auto knows a UUID by its form.")]
Arrived = Annotated[str | None, typer.Option("--arrived", metavar="COLUMN", help="When the message arrived.")]
Departed = Annotated[str | None, typer.Option("--departed", metavar="COLUMN", help="When the message left.")]
Server = Annotated[str | None, typer.Option("--server", metavar="COLUMN", help="The column of the server.")]
ServerFrom = Annotated[
    str | None, typer.Option("--server-from", metavar="REGEX", help="The server, out of the path: the first group.")
]
Format = Annotated[str, typer.Option("--format", help="auto, jsonl, csv, parquet or avro.")]
SlicesOption = Annotated[
    str | None,
    typer.Option("--slices", metavar="START/LENGTH", help="Each file is a slice of its server's time: .../15m."),
]
Servers = Annotated[
    str | None,
    typer.Option("--servers", metavar="NAMES", help="With --slices: servers to miss even if no file of theirs comes."),
]
Counted = Annotated[
    str | None,
    typer.Option("--counted", metavar="COLUMN", help="The column of counts, of a node that only counts; without --id."),
]
CountedAs = Annotated[
    str | None,
    typer.Option("--counted-as", metavar="COLUMN", help="Their stamp: in, out, filtered, rejected or deferred."),
]
IdXor = Annotated[
    str | None, typer.Option("--id-xor", metavar="COLUMN", help="The XOR of the fingerprint of what was counted.")
]
IdSum = Annotated[str | None, typer.Option("--id-sum", metavar="COLUMN", help="The sum of the same.")]
Bytes = Annotated[str | None, typer.Option("--bytes", metavar="COLUMN", help="The size of what was counted, in bytes.")]
ByeOption = Annotated[bool, typer.Option("--bye", help="Nothing follows these files: the servers have ended.")]


def command(  # noqa: PLR0913 - one parameter a flag
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders, patterns, URLs.")],
    *,
    stream: Annotated[str, typer.Option("--stream", help="The stream that the messages belong to.")],
    node: Annotated[str, typer.Option("--node", help="The node that they arrive at, or leave.")],
    time_column: TimeColumn,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column of the id, such as meta.id.")
    ] = None,
    counted: Counted = None,
    counted_as: CountedAs = None,
    id_xor: IdXor = None,
    id_sum: IdSum = None,
    size_column: Bytes = None,
    sink: Annotated[str | None, typer.Option("--sink", help="Where stamps go; HOPWATCH_SINK without it.")] = None,
    time_unit: Unit = TimeUnit.US,
    zone: Zone = None,
    stamp: Stamp = None,
    id_as: IdAs = IdFormat.AUTO,
    arrived: Arrived = None,
    departed: Departed = None,
    server: Server = None,
    server_from: ServerFrom = None,
    file_format: Format = "auto",
    slices: SlicesOption = None,
    servers: Servers = None,
    bye: ByeOption = False,
    state: Annotated[
        Path | None, typer.Option("--state", help="Keeps which files are through, so that a start anew skips them.")
    ] = None,
    no_id_text: Annotated[
        bool, typer.Option("--no-id-text", help="Send of texts that are ids the hashes alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was done, as one JSON object on stdout.")] = False,
) -> None:
    """Import observations, or counts, out of files, the same ones whoever imports them, however often."""
    plan = build_plan(
        stream, node, id_column=id_column, time_column=time_column, time_unit=time_unit, zone=zone, stamp=stamp,
        id_as=id_as, arrived=arrived, departed=departed, server=server, server_from=server_from,
        file_format=file_format, slices=slices, servers=servers, bye=bye, id_text=not no_id_text,
        counted=CountColumns(counted, counted_as, id_xor, id_sum, size_column),
    )  # fmt: skip
    from hopwatch.probes.files.done_files import DoneFiles
    from hopwatch.probes.files.importer import Importer
    from hopwatch.probes.files.outputs import open_output
    from hopwatch.probes.files.places import list_places
    from hopwatch.probes.taps.startup import find_sink_url

    around = RunContext(_print_message)
    with signals.stop_on_signals(around.stop), translate_tap_errors(TapDownError):
        url = find_sink_url(sink)
        places = list_places(files)
        output = open_output(url, around, is_replay=True)
        done = None if state is None else DoneFiles(state, f"{stream} {node} {url} {plan.state_text}")
        with done.lock() if done else nullcontext():
            tally = _ImportTally(len(places))
            with _show_progress(places) as progress:
                importer = Importer(plan, output, progress.advance)
                if done is not None:
                    importer.resume(done.slices, done.ends)
                for place in places:
                    if around.stop.is_set():
                        break
                    tally.import_file(place, importer, output, done, around, progress)
                if not around.stop.is_set():
                    importer.finish()
                tally.settle(output, done)
    _tell_end(tally, plan, as_json=as_json, is_stopped=around.stop.is_set())


class CountColumns(NamedTuple):
    """Columns of a file of counts, by flags; none of one that has ids."""

    counts: str | None = None
    stamp: str | None = None
    id_xor: str | None = None
    id_sum: str | None = None
    bytes: str | None = None


NO_COUNTS: Final = CountColumns()


def build_plan(  # noqa: PLR0913 - one parameter a flag
    stream: str,
    node: str,
    *,
    id_column: str | None,
    time_column: str,
    time_unit: TimeUnit,
    zone: str | None,
    stamp: StampSide | None,
    id_as: IdFormat,
    arrived: str | None,
    departed: str | None,
    server: str | None,
    server_from: str | None,
    file_format: str,
    slices: str | None,
    servers: str | None,
    bye: bool,
    id_text: bool,
    counted: CountColumns = NO_COUNTS,
) -> ImportPlan:
    """Build the plan of an import from flags.

    Raises:
        ConfigurationError: they contradict each other, or one cannot be.
    """
    try:
        from hopwatch.probes.files.file_columns import (
            CountMapping,
            FileFormat,
            FileMapping,
            check_counts,
            check_mapping,
        )
        from hopwatch.probes.files.importer import ImportPlan
        from hopwatch.probes.files.slices import parse_slices
    except ImportError as error:
        raise ConfigurationError(f"files need hopwatch[files], of which {error.name} is missing: install it") from None

    for what, name in (("--stream", stream), ("--node", node)):
        if not NAME_PATTERN.fullmatch(name):
            raise ConfigurationError(f"{what} is 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.60}")
    if server is not None and server_from is not None:
        raise ConfigurationError("the server stands in a column or in the path: name --server or --server-from")
    named = tuple(name.strip() for name in servers.split(",")) if servers is not None else ()
    if named and (slices is None or not all(name and name.isprintable() for name in named)):
        raise ConfigurationError(
            f"--servers names those whose --slices are missed, such as web-1,web-2; got {servers!r:.60}"
        )
    if file_format not in list(FileFormat):
        raise ConfigurationError(f"--format is {', '.join(FileFormat)}, got {file_format!r:.40}")
    try:
        pattern = None if server_from is None else re.compile(server_from)
    except re.error as error:
        raise ConfigurationError(f"--server-from is a regular expression, got {server_from!r:.60}: {error}") from None
    with translate_tap_errors(TapDownError):
        mapping: FileMapping | CountMapping
        side, known_format = stamp or StampSide.IN, FileFormat(file_format)
        if _reads_counts(counted, id_column, has_more=bool(arrived or departed or id_as is not IdFormat.AUTO)):
            mapping = CountMapping(
                counted.counts or "", *counted[1:], time_column, time_unit, side, zone, server, known_format
            )
            check_counts(mapping, is_side_given=stamp is not None)
        else:
            columns = arrived, departed, server
            mapping = FileMapping(id_column or "", time_column, time_unit, side, id_as, zone, *columns, known_format)
            check_mapping(mapping, is_side_given=stamp is not None)
        found = None if slices is None else parse_slices(slices)
    return ImportPlan(stream, node, mapping, found, bye, id_text, server_pattern=pattern, servers=named)


def _reads_counts(counted: CountColumns, id_column: str | None, *, has_more: bool) -> bool:
    """Return whether a file has counts; ``has_more`` says that flags of files with ids were given beside ``--id``.

    Raises:
        ConfigurationError: flags of both were given, or of neither.
    """
    if counted.counts is not None and (id_column is not None or has_more):
        told = "--counted reads counts, and no ids: leave --id, --id-as, --arrived and --departed out"
        raise ConfigurationError(told)
    if counted.counts is None and any(counted):
        raise ConfigurationError("--counted-as, --id-xor, --id-sum and --bytes go with --counted")
    if counted.counts is None and id_column is None:
        raise ConfigurationError("name the column of the ids with --id, or that of counts with --counted")
    return counted.counts is not None


def describe_result(result: FileResult) -> str:
    """Describe what is wrong with a file, in one line; nothing if it is whole."""
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(result.bad.items()))
    told = [result.fault, f"rows that cannot be read: {reasons}" if reasons else "", result.note]
    what = "; ".join(one for one in told if one)
    return f"{result.name}: {what}; {result.observations:,} rows of it count" if what else ""


class _ImportTally:
    """Counts of an import, for the end."""

    def __init__(self, files: int) -> None:
        self.files, self.skipped, self.observations, self.bytes = files, 0, 0, 0
        self.bad: Counter[str] = Counter()
        self.faults: list[dict[str, object]] = []
        self.read = 0
        self.started_s = self._settled_s = time.monotonic()
        self._unsettled: list[FileResult] = []

    def import_file(  # noqa: PLR0913, PLR0917 - what one file needs
        self,
        place: str,
        importer: Importer,
        output: RecordOutput,
        done: DoneFiles | None,
        around: RunContext,
        progress: _Progress,
    ) -> None:
        progress.begin(place)
        if done is not None and done.knows_look(place):
            self.skipped += 1
            return
        result = importer.import_file(place, around.stop)
        if around.stop.is_set() and result.fault:
            return
        self.read += 1
        self.observations += result.observations
        self.bytes += result.bytes
        self.bad.update(result.bad)
        if told := describe_result(result):
            _print_message(told)
        if not result.is_whole or result.note:
            bad = {str(reason): count for reason, count in sorted(result.bad.items())}
            self.faults.append({"file": place, "fault": result.fault or result.note, "bad": bad})
        if not result.fault:
            self._unsettled.append(result)
        if done is not None and time.monotonic() - self._settled_s >= SETTLE_EVERY_S:
            self.settle(output, done)

    def settle(self, output: RecordOutput, done: DoneFiles | None) -> None:
        """Make durable what was written, and note the files in the state."""
        output.settle()
        self._settled_s = time.monotonic()
        if done is not None:
            for result in self._unsettled:
                done.add(result.name, result.look, result.slices, result.ends)
        self._unsettled.clear()


class _Progress:
    """Bar of all files, by their bytes."""

    def __init__(self, places: list[str], bar: Progress | None) -> None:
        self._bar = bar
        self._sizes = {place: _size(place) for place in places}
        self._before = self._now = 0
        self._task = bar.add_task("importing", total=sum(self._sizes.values())) if bar else None

    def begin(self, place: str) -> None:
        self._before += self._now
        self._now = self._sizes.get(place, 0)
        self._update(0, Path(place).name)

    def advance(self, position: int) -> None:
        self._update(min(position, self._now), None)

    def _update(self, position: int, name: str | None) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self._before + position, description=name)


@contextmanager
def _show_progress(places: list[str]) -> Iterator[_Progress]:
    words = console.stderr()
    if not words.is_terminal:
        yield _Progress(places, None)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=words, transient=True) as bar:
        yield _Progress(places, bar)


def _tell_end(tally: _ImportTally, plan: ImportPlan, *, as_json: bool, is_stopped: bool) -> None:
    seconds = max(time.monotonic() - tally.started_s, 1e-9)
    told = f"{tally.observations:,} rows of {tally.read:,} files imported, {tally.observations / seconds:,.0f} a second"
    bad = f", {sum(tally.bad.values()):,} rows bad" if tally.bad else ""
    skipped = f", {tally.skipped:,} files were through already" if tally.skipped else ""
    _print_message(f"{told}{bad}{skipped}")
    if plan.slices is None and not plan.bye and tally.observations:
        _print_message(
            "nobody knows whether these are all files, so what is not in them is UNKNOWN: --bye says that they are, "
            "--slices that each is a slice of its server's time"
        )
    if as_json:
        console.emit_json({
            "files": tally.files, "imported": tally.read, "skipped": tally.skipped,
            "observations": tally.observations, "bytes": tally.bytes,
            "bad": {str(reason): count for reason, count in sorted(tally.bad.items())}, "faults": tally.faults,
        })  # fmt: skip
    if is_stopped:
        _print_message("stopped: the same command goes on, and changes nothing that is there")
        raise typer.Exit(INTERRUPTED_EXIT_CODE)
    if tally.faults:
        raise typer.Exit(FINDING_EXIT_CODE)


def _size(place: str) -> int:
    try:
        return Path(place).stat().st_size
    except OSError:
        return 0


def _print_message(what: str) -> None:
    console.stderr().print(f"hopwatch import: {what}")
