"""Steps of the clocks of probe instances: one that is set back, and one that is found ahead of the arrival clock.

Both are bounds that hold however late a batch arrives. A clock that is behind looks like a late batch, and is not told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from hopwatch.monitor.accounting.ledger import InstanceKey
from hopwatch.monitor.accounting.new_batches import sort_new_batches
from hopwatch.monitor.kernel.books import BatchFact, Book
from hopwatch.monitor.payloads import FactSheet

MIN_STEP_US: Final = 5_000_000
"""Smaller steps are not told: minutes hardly differ by them."""


class StepKind(StrEnum):
    """Kinds of steps, as texts name them."""

    SET_BACK = "set back"
    AHEAD = "ahead"


class ClockStep(NamedTuple):
    """Step of the clocks of probes of a node, as seen at an arrival, by ``least_us`` or more; names are in order."""

    stream: str
    node: str
    kind: StepKind
    at_us: int
    least_us: int
    probes: tuple[str, ...]


class _Step(NamedTuple):
    kind: StepKind
    at_us: int
    least_us: int


def find_clock_steps(books: Mapping[InstanceKey, Book], sheets: Iterable[FactSheet]) -> list[ClockStep]:
    """Return the steps between what the books know and the batches that came, one of each kind for a node.

    A probe sends its batches in the order of their numbers. So its clock was set back if a batch was sent before the
    moment that an earlier one completes. It is ahead if a batch was sent later than it arrived; that is told where the
    batch before did not show it.
    """
    found: defaultdict[tuple[str, str, StepKind], list[tuple[_Step, str]]] = defaultdict(list)
    for (stream, node, probe, _), book, facts in sort_new_batches(books, sheets):
        for step in _find_steps(book, facts):
            found[stream, node, step.kind].append((step, probe))
    return [
        ClockStep(
            *place,
            min(step.at_us for step, _ in of_node),
            min(step.least_us for step, _ in of_node),
            tuple(sorted({probe for _, probe in of_node})),
        )
        for place, of_node in sorted(found.items())
    ]


def _find_steps(book: Book | None, facts: Iterable[BatchFact]) -> Iterator[_Step]:
    """Yield the steps of one instance, batch by batch in the order of their numbers."""
    complete_us, ahead_us = (book.complete_through_us, book.skew_us) if book else (0, None)
    for fact in facts:
        ahead_before_us, ahead_us = ahead_us, fact.sent_at_us - fact.arrival_us
        back_us = complete_us - fact.sent_at_us
        complete_us = max(complete_us, min(fact.complete_through_us, fact.sent_at_us))
        if ahead_before_us is None:
            # Of the first batch there is nothing to compare it with.
            continue
        if min(back_us, ahead_before_us - ahead_us) >= MIN_STEP_US:
            yield _Step(StepKind.SET_BACK, fact.arrival_us, back_us)
        elif ahead_before_us < MIN_STEP_US <= ahead_us:
            yield _Step(StepKind.AHEAD, fact.arrival_us, ahead_us)
