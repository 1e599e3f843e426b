"""Rows of the page of probe instances: state, batches, holes, drops and clock of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from hopwatch.display import texts
from hopwatch.display.clock_offsets import format_offset
from hopwatch.display.colours import Mark
from hopwatch.monitor.accounting.instances import (
    AHEAD_US,
    BYE_LISTED_US,
    SILENT_LISTED_US,
    Instance,
    InstancePage,
    InstanceState,
)
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US, Book

MARKS: Final = {
    InstanceState.SILENT: Mark("SILENT", "⚠", "no bye, and no report of the last minute: windows wait for it", "lossy"),
    InstanceState.TROUBLED: Mark(
        "TROUBLED", "!", "it reports, but batches are missing, or observations were dropped or set aside", "unknown"
    ),
    InstanceState.RETIRED: Mark(
        "RETIRED",
        "∅",
        f"silent without a bye for over {texts.format_age(RETIRED_AFTER_US)}: nothing waits for it",
        "silent",
    ),
    InstanceState.ALIVE: Mark("ALIVE", "✓", "it reports, and nothing is missing", "clean"),
    InstanceState.BYE: Mark("BYE", "○", "it said bye", "idle"),
}
VERSIONS: Final = "Versions of probes are not known: the store keeps none."
_MAX_CAUSES: Final = 4
"""Most causes of drops that are named one by one."""


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """A row of the page of probe instances; of a pair of texts the second explains the first."""

    stream: str
    node: str
    probe: tuple[str, str]
    mark: Mark
    note: str
    last_heard: str
    is_late: bool
    complete_through: tuple[str, str]
    batches: tuple[str, str]
    missing: tuple[str, str]
    drops: tuple[str, str]
    set_aside: tuple[str, str]
    clock_skew: tuple[str, str]
    is_ahead: bool


def build_rows(roll: InstancePage, now_us: int, zone: tzinfo) -> tuple[InstanceRow, ...]:
    """Return the rows, in the order that the store gives them."""
    return tuple(_build_row(one, roll.moment_us, now_us, zone) for one in roll.instances)


def format_summary(roll: InstancePage) -> str:
    """Return how many instances there are of each state, in a line."""
    total = sum(roll.counts.values())
    told = ", ".join(f"{roll.counts[state]:,} {MARKS[state].word}" for state in InstanceState if roll.counts.get(state))
    return f"{total:,} {'instance' if total == 1 else 'instances'}{': ' if told else ''}{told}"


def format_folded(roll: InstancePage) -> str:
    """Return how many are folded away and why; nothing where none is."""
    byes = roll.folded.get(InstanceState.BYE, 0)
    gone = sum(roll.folded.values()) - byes
    told = [
        f"{count:,} {what}"
        for count, what in (
            (byes, f"that said bye over {_format_hours(BYE_LISTED_US)} ago"),
            (gone, f"that fell silent without a bye over {_format_hours(SILENT_LISTED_US)} ago"),
        )
        if count
    ]
    return f"Folded away: {' and '.join(told)}" if told else ""


def _format_hours(for_us: int) -> str:
    return f"{for_us // 3_600_000_000} h"


def _build_row(one: Instance, moment_us: int, now_us: int, zone: tzinfo) -> InstanceRow:
    book, through_us = one.book, one.book.complete_through_us
    tallies = book.tallies
    read = tallies.batches - tallies.duplicate_batches
    holes = book.holes()
    missing = sum(count for count, _, _ in holes)
    due = book.runs[-1].last + 1 if book.runs else 0
    twice = f"{texts.format_count(tallies.duplicate_batches)} twice" if tallies.duplicate_batches else ""
    late = f"{texts.format_age(now_us - through_us)} ago"
    return InstanceRow(
        book.stream,
        book.node,
        (book.probe, f"since {texts.format_second(book.epoch_us, zone)}"),
        MARKS[one.state],
        _format_note(one, moment_us),
        f"{texts.format_age(now_us - book.last_arrival_us)} ago",
        one.state is InstanceState.SILENT,
        (late, texts.format_second(through_us, zone)),
        (texts.format_count(read), ", ".join(part for part in (f"of {texts.format_count(due)} due", twice) if part)),
        (texts.format_count(missing), _format_newest_hole(holes, zone)),
        _format_drops(book),
        _format_set_aside(book),
        _format_skew(book),
        book.skew_us > AHEAD_US,
    )


def _format_note(one: Instance, moment_us: int) -> str:
    heard_us = one.book.last_arrival_us
    if one.state is InstanceState.SILENT and moment_us - heard_us < moment_us - one.book.complete_through_us - AHEAD_US:
        return (
            f"it was heard {texts.format_age(moment_us - heard_us)}"
            f" ago, and reported up to {_format_behind(one, moment_us)} ago"
        )
    return f"for {_format_behind(one, moment_us)}" if one.state in {InstanceState.SILENT, InstanceState.RETIRED} else ""


def _format_behind(one: Instance, moment_us: int) -> str:
    return texts.format_age(moment_us - one.book.complete_through_us)


def _format_newest_hole(holes: list[tuple[int, int, int]], zone: tzinfo) -> str:
    """Return where the newest hole is: the moments that what is missing may speak of."""
    if not holes:
        return ""
    _, from_us, to_us = holes[-1]
    more = f"{len(holes):,} holes, the newest: " if len(holes) > 1 else ""
    return f"{more}{texts.format_second(from_us, zone)} to {texts.format_second(to_us, zone)}"


def _format_drops(book: Book) -> tuple[str, str]:
    causes: Counter[str] = Counter()
    for (_, cause), count in book.drops.items():
        causes[cause] += count
    named = [f"{cause}: {texts.format_count(count)}" for cause, count in causes.most_common(_MAX_CAUSES)]
    more = [f"{len(causes) - _MAX_CAUSES:,} more causes"] if len(causes) > _MAX_CAUSES else []
    return texts.format_count(causes.total()), ", ".join([*named, *more])


def _format_set_aside(book: Book) -> tuple[str, str]:
    told = ((book.tallies.too_late, "too late"), (book.tallies.implausible, "implausible"))
    named = [f"{what}: {texts.format_count(count)}" for count, what in told if count]
    return texts.format_count(sum(count for count, _ in told)), ", ".join(named)


def _format_skew(book: Book) -> tuple[str, str]:
    """Return how far the clock is from the brokers', or by how much it is ahead at least; else how long a batch took.

    That is from when the last batch was sent until it arrived.
    """
    if book.clock_offset is not None:
        return format_offset(book.clock_offset), "by the clock of the brokers"
    if book.skew_us > 0:
        return f"{texts.format_lag(book.skew_us)} ahead", "at least: sent after arrival"
    return texts.NONE, f"{texts.format_lag(-book.skew_us)} to arrival"
