"""Check of the last hour of data: problems with probes and configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.cli.checks.stores import store_error_finding
from hopwatch.display.clock_offsets import describe_clock, group_clocks
from hopwatch.monitor.accounting import undeclared_names
from hopwatch.monitor.accounting.instances import AHEAD_US, InstanceClock
from hopwatch.monitor.accounting.undeclared_names import UNKNOWN_NODE, UndeclaredName
from hopwatch.monitor.errors import StoreError
from hopwatch.monitor.store import dialect, instances, reader, recent_problems, schema
from hopwatch.monitor.store.recent_problems import RecentProblems
from hopwatch.monitor.store.rollups import HOUR_US
from hopwatch.monitor.texts.read_progress import iso_second

MAX_PER_KIND: Final = 5
MAX_DUPLICATE_RATIO: Final = 0.5
"""Duplicates per message; more than this are no retries: a service stamps twice, or a link delivers twice."""


def check_data(url: str, streams: Collection[str], now_us: int) -> Iterator[Finding]:
    """Yield the problems of the data, or that there are none; nothing without streams.

    The first finding is about the monitor, if it has read nothing for a while.
    """
    if not streams:
        return
    engine = dialect.create_engine(url)
    try:
        if not schema.has_store(url):
            what = "no monitor has written here yet: nothing is known of any stream"
            yield Finding("data", Level.NOTE, what, "start hopwatch run")
            return
        with schema.open_snapshot(engine) as connection:
            found = recent_problems.read_recent_problems(connection, streams, HOUR_US)
            known = reader.read_stream_ranges(connection)
            reached = instances.read_progress(connection)
            clocks = [one for one in instances.read_wrong_clocks(connection) if one.stream in streams]
    except StoreError as error:
        yield replace(store_error_finding(error), check="data")
        return
    finally:
        engine.dispose()
    if (notice := reached.notice(now_us, iso_second)) is not None:
        level = Level.WARN if notice.is_grave else Level.NOTE
        stalled = "docs/runbooks/monitor_stalled.md says how to tell, and what to do" if notice.is_grave else ""
        advice = "hopwatch run starts it" if reached.stopped_us is not None else stalled
        yield Finding("monitor", level, notice.words, advice)
    if (notice := reached.config_notice) is not None:
        yield Finding(
            "monitor", Level.WARN, notice.words, "correct the file, or restart hopwatch run if it asks for that"
        )
    kinds = (
        _find_empty_streams(found),
        _find_names(found),
        _find_implausible(found),
        _find_unread(found),
        _find_dropped(found),
        _find_orphans(found),
    )
    every = (*kinds, _find_duplicates(found), _find_unread_streams(streams, known), _find_wrong_clocks(clocks))
    told = [finding for kind in every for finding in _limit_findings(kind)]
    if not told:
        what = "nothing was set aside or dropped in the last hour, and no message was seen out of place"
        told = [Finding("data", Level.OK, what)]
    yield from told


def _limit_findings(findings: Iterator[Finding]) -> Iterator[Finding]:
    level = Level.OK
    for finding in islice(findings, MAX_PER_KIND):
        level = finding.level
        yield finding
    if left := sum(1 for _ in findings):
        yield Finding("data", level, f"and {left:,} more of this kind", "hopwatch report --json has all of them")


def _find_unread_streams(streams: Collection[str], known: Collection[str]) -> Iterator[Finding]:
    """Yield the streams without a window, in one finding if no stream has one."""
    missing = sorted(set(streams).difference(known))
    advice = "stamp its messages in a service: docs/INTERFACE.md has the calls of a probe"
    if len(missing) == len(streams):
        told = "no window yet: no message of any stream was read, so that nothing is known of loss and lag"
        yield Finding("data", Level.NOTE, told, advice.replace("its", "the"))
        return
    for stream in missing:
        told = f"{stream} has no window: no message of it was read, so that nothing is known of its loss and lag"
        yield Finding("data", Level.NOTE, told, advice)


def _find_wrong_clocks(clocks: Iterable[InstanceClock]) -> Iterator[Finding]:
    """Yield the nodes with a clock that is wrong; a second or more makes a warning."""
    for farthest, others in group_clocks(clocks):
        is_grave = max(farthest.offset.low_us, -farthest.offset.high_us) >= AHEAD_US
        told = f"{farthest.stream}: {describe_clock(farthest, others)}"
        advice = "let one time server set the clocks of all hosts"
        yield Finding("data", Level.WARN if is_grave else Level.NOTE, told, advice)


def _find_empty_streams(found: RecentProblems) -> Iterator[Finding]:
    for stream in found.empty:
        observations = sum(one.observations for one in found.implausible if one.stream == stream)
        records = sum(one.records for one in found.names if _intended_stream(one) == stream)
        parts = [f"{observations:,} observations are implausible"] if observations else []
        parts += [f"{records:,} records name what is not declared"] if records else []
        if parts:
            yield _warning(
                f"{stream} has no message in the last hour: all that came was set aside: {', '.join(parts)}",
                "fix what the next lines say: until then no window of the stream is meaningful",
            )


def _intended_stream(one: UndeclaredName) -> str:
    """Return the declared stream of a name, or the nearest one."""
    return one.stream if one.reason == UNKNOWN_NODE else one.nearest


def _find_names(found: RecentProblems) -> Iterator[Finding]:
    for one in found.names:
        yield _warning(
            undeclared_names.describe_name(one),
            "correct the name in the service, or declare it: hopwatch pathway discover says where a node stands; "
            "ignore_nodes leaves nodes out",
        )


def _find_implausible(found: RecentProblems) -> Iterator[Finding]:
    for one in found.implausible:
        yield _warning(
            f"{one.stream}, node {one.node}: {one.observations:,} observations have an event time that cannot be",
            "give probes event times in µs since 1970, or as datetimes with a zone; old ones need max_age",
        )


def _find_unread(found: RecentProblems) -> Iterator[Finding]:
    for reason, records in found.unread:
        yield _warning(
            f"{_format_count(records, 'record')} cannot be counted: {reason}",
            "the page of quality of hopwatch dashboard says what is wrong with each, and where its bytes are",
        )


def _find_dropped(found: RecentProblems) -> Iterator[Finding]:
    for one in found.nodes:
        if one.dropped:
            yield _warning(
                f"{one.stream}, node {one.node}: probes dropped {_format_count(one.dropped, 'observation')}",
                "the log of the service says why, and the page of probes of hopwatch dashboard",
            )


def _find_orphans(found: RecentProblems) -> Iterator[Finding]:
    for one in found.nodes:
        if one.orphans:
            yield _warning(
                f"{one.stream}, node {one.node}: {one.orphans:,} of {one.seen:,} messages were seen at none before it",
                "stamp all messages at the nodes before it, with the same ids, or correct the path of the stream",
            )


def _find_duplicates(found: RecentProblems) -> Iterator[Finding]:
    for one in found.nodes:
        if one.duplicates > MAX_DUPLICATE_RATIO * one.messages:
            yield _warning(
                f"{one.stream}, node {one.node}: {one.messages:,} stamps came {one.duplicates:,} times more",
                "look whether the service stamps twice, or takes each message twice",
            )


def _warning(what: str, advice: str) -> Finding:
    return Finding("data", Level.WARN, what, advice)


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
