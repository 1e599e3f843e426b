"""Contents of an evidence file: its header, the final windows of streams with their lost ids, and its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import Connection, select

from hopwatch.monitor.evidence.chain import FORMAT
from hopwatch.monitor.results import Status, format_iso
from hopwatch.monitor.store import lost_messages, pathway_versions, reader, tables
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import WINDOW_US

Json = dict[str, Any]

WINDOWS_PER_READ: Final = 10
"""Windows in memory at once: there may be thousands of nodes."""
IDS_PER_LINE: Final = 10_000


@dataclass(frozen=True, slots=True)
class EvidenceRange:
    """Windows of streams that start in ``[from_us, to_us)``; ``allow_open`` leaves out those that are not final."""

    streams: tuple[str, ...]
    from_us: int
    to_us: int
    allow_open: bool = False


@dataclass(slots=True)
class StreamCounts:
    """Counts of a stream: windows written, their lost ids, windows left out, minutes without a window in the store."""

    windows: int = 0
    lost_ids: int = 0
    left_out: int = 0
    absent: int = 0


def find_open_windows(connection: Connection, wanted: EvidenceRange) -> list[tuple[str, int]]:
    """Return (stream, start of the first window in the range that is not final), of streams that have one.

    Minutes behind the newest final window count as not final, whether the store has them or not.
    """
    found = []
    for stream in wanted.streams:
        newest_us = reader.read_newest_final_us(connection, stream)
        next_us = wanted.from_us if newest_us is None else max(newest_us + WINDOW_US, wanted.from_us)
        open_us = [start_us for start_us, status in _read_statuses(connection, stream, wanted) if not status.is_final]
        first_us = min([next_us, *open_us])
        if first_us < wanted.to_us:
            found.append((stream, first_us))
    return found


def build_header(
    connection: Connection, wanted: EvidenceRange, configs: dict[str, StreamConfig], facts: Json, previous: str | None
) -> Json:
    """Build the first line: what the file is about, and by which versions of each stream its windows were judged.

    ``configs`` are of streams that the store does not know. ``facts`` are the versions of programs and the moment of
    the export; ``previous`` is the last hash of the file before.
    """
    known = configs | pathway_versions.read_versions(connection)
    return {
        "kind": "header",
        "format": FORMAT,
        "from": format_iso(wanted.from_us),
        "to": format_iso(wanted.to_us),
        "previous": previous,
        **facts,
        "streams": [
            {
                "stream": name,
                "versions": [
                    _version_to_json(version)
                    for version in reversed(known[name].select_versions(wanted.from_us, wanted.to_us))
                ],
            }
            for name in wanted.streams
        ],
    }


def build_end(counts: dict[str, StreamCounts]) -> Json:
    """Build the last line of the chain: how many lines of each stream there are."""
    return {"kind": "end", "streams": [{"stream": name, **asdict(of)} for name, of in counts.items()]}


def iterate_windows(connection: Connection, wanted: EvidenceRange, counts: dict[str, StreamCounts]) -> Iterator[Json]:
    """Yield a line for each final window, and behind it lines of its lost ids; count them by their streams."""
    for stream in wanted.streams:
        of_stream = counts[stream] = StreamCounts()
        statuses = _read_statuses(connection, stream, wanted)
        of_stream.absent = (wanted.to_us - wanted.from_us) // WINDOW_US - len(statuses)
        starts_us = [start_us for start_us, status in statuses if status.is_final]
        of_stream.left_out = len(statuses) - len(starts_us)
        for at in range(0, len(starts_us), WINDOWS_PER_READ):
            for line in _read_lines(connection, stream, starts_us[at : at + WINDOWS_PER_READ]):
                of_stream.windows += line["kind"] == "window"
                of_stream.lost_ids += len(line.get("ids", ()))
                yield line


def _read_lines(connection: Connection, stream: str, starts_us: Sequence[int]) -> Iterator[Json]:
    to_us = starts_us[-1] + WINDOW_US
    final = {format_iso(start_us): start_us for start_us in starts_us}
    for window in reader.read_windows_json(connection, stream, starts_us[0], to_us, with_revisions=True):
        start = window["window_start"]
        if start in final:
            yield {"kind": "window", "stream": stream, **window}
            yield from _read_lost_ids(connection, stream, final[start])


def _read_lost_ids(connection: Connection, stream: str, start_us: int) -> Iterator[Json]:
    """Yield the lost ids of a window, some thousand a line, each as people have it."""
    column = tables.lost_ids.c
    wanted = select(tables.lost_ids).where(column.stream == stream, column.window_start_us == start_us)
    for row in connection.execute(wanted.order_by(column.node)):
        ids = [name for _, name in lost_messages.read_named_ids(row)]
        for at in range(0, len(ids), IDS_PER_LINE):
            part = ids[at : at + IDS_PER_LINE]
            yield {
                "kind": "lost_ids",
                "stream": stream,
                "window_start": format_iso(start_us),
                "node": row.node,
                "ids": part,
            }


def _read_statuses(connection: Connection, stream: str, wanted: EvidenceRange) -> list[tuple[int, Status]]:
    column = tables.windows.c
    chosen = select(column.window_start_us, column.status).where(
        column.stream == stream, column.window_start_us >= wanted.from_us, column.window_start_us < wanted.to_us
    )
    return [
        (row.window_start_us, Status(row.status))
        for row in connection.execute(chosen.order_by(*chosen.selected_columns))
    ]


def _version_to_json(config: StreamConfig) -> Json:
    return {
        "valid_from": format_iso(config.valid_from_us) if config.valid_from_us else None,
        "pathway": pathway_versions.encode_pathway(config.pathway),
        **asdict(config.terms),
        "shards": config.shards,
        "order": config.order,
        "max_lost_ids": config.max_lost_ids,
        "deadlines_us": dict(config.deadlines),
        "ignore_nodes": list(config.ignore_nodes),
    }
