"""Queries for the monitor's own metrics: counts of the store, and its state when a monitor starts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, func, select

from hopwatch.monitor.accounting.instances import ALIVE_WITHIN_US
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US
from hopwatch.monitor.metrics.snapshot import InitialState, StoreFigures
from hopwatch.monitor.payloads import SET_ASIDE_REASONS
from hopwatch.monitor.results import Status, WindowResult
from hopwatch.monitor.store import fencing, reader, tables
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.limits import MONITOR_STREAM

_WAITING: Final = [status.value for status in Status if not status.is_final]


def read_figures(connection: Connection, rules: Mapping[str, StreamConfig]) -> StoreFigures:
    """Query the figures of the monitor's own work."""
    accounts = reader.read_accounts(connection)
    counted = ("records", "observations", "duplicate_batches", "too_late", "implausible")
    # A counter that is not there before its first record shows no increase when that comes.
    set_aside = dict.fromkeys(SET_ASIDE_REASONS, 0) | accounts["set_aside"]
    aged_out = sum(hole["to_offset"] - hole["from_offset"] + 1 for hole in accounts.get("aged_out", ()))
    waiting = dict.fromkeys(_WAITING, 0) | _count_waiting(connection, rules)
    return StoreFigures(
        **{name: accounts[name] for name in counted},
        set_aside=set_aside,
        aged_out=aged_out,
        waiting=waiting,
        **_count_instances(connection),
    )


def read_starting_point(connection: Connection, rules: Mapping[str, StreamConfig]) -> InitialState:
    """Query the state of the store at the start: newest final window of each stream, windows that may change."""
    window, watermark_us = tables.windows.c, fencing.read_watermark_us(connection)
    found = (_read_newest_window(connection, stream) for stream in rules)
    judged: set[tuple[str, int]] = set()
    for stream, of_stream in rules.items():
        # A window that starts earlier is past its last judgement.
        from_us = watermark_us - max(version.terms.judged_until_us(0) for version in of_stream.versions)
        wanted = _select_since(stream, from_us, window.window_start_us).where(
            window.is_live, window.status.in_(tables.FINAL_STATUSES)
        )
        judged |= {(stream, start_us) for start_us in connection.execute(wanted).scalars()}
    return InitialState(watermark_us, tuple(result for result in found if result is not None), judged)


def _read_newest_window(connection: Connection, stream: str) -> WindowResult | None:
    start_us = reader.read_newest_final_us(connection, stream)
    return None if start_us is None else reader.read_window(connection, stream, start_us)


def _select_since(stream: str, from_us: int, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query for the windows of a stream since a time; by the primary key, so older windows cost nothing."""
    window = tables.windows.c
    return select(*columns).where(window.stream == stream, window.window_start_us >= from_us)


def _count_waiting(connection: Connection, rules: Mapping[str, StreamConfig]) -> dict[str, int]:
    window, watermark_us = tables.windows.c, fencing.read_watermark_us(connection)
    found: Counter[str] = Counter()
    for stream, of_stream in rules.items():
        # A window that starts earlier is judged.
        from_us = watermark_us - max(version.terms.final_at_us(0) for version in of_stream.versions)
        wanted = _select_since(stream, from_us, window.status, func.count()).where(window.status.in_(_WAITING))
        found.update({status: int(count) for status, count in connection.execute(wanted.group_by(window.status))})
    return dict(found)


def _count_instances(connection: Connection) -> dict[str, Any]:
    book, watermark_us = tables.books.c, fencing.read_watermark_us(connection)
    # The monitor's own pulse is no probe of anybody's.
    of_late = (
        book.stream != MONITOR_STREAM,
        ~book.said_bye,
        book.complete_through_us >= watermark_us - RETIRED_AFTER_US,
    )
    is_alive = (book.complete_through_us >= watermark_us - ALIVE_WITHIN_US).label("is_alive")
    wanted = select(is_alive, func.count(), func.sum(book.missing_batches)).where(*of_late).group_by(is_alive)
    found = {bool(alive): (int(count), int(missing)) for alive, count, missing in connection.execute(wanted)}
    instances = {name: found.get(alive, (0, 0))[0] for name, alive in (("alive", True), ("silent", False))}
    return {"instances": instances, "missing_batches": sum(missing for _, missing in found.values())}
