"""Table of counts by label: a line a value, its messages, what is lost, stopped on purpose, and slow of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hopwatch.display import texts
from hopwatch.monitor.results import LabelCounts, LabelValueKind
from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.escaping import escape_line

LABEL_COLUMNS: Final = (
    "label", "said at", "value", "messages", "lost", "lost %", "filtered", "rejected", "in flight", "slow", "slow %",
)  # fmt: skip
"""Heads of the columns; the first three are words."""
_NO_VALUE: Final = {LabelValueKind.OTHER: "(all others)", LabelValueKind.NONE: "(no value)"}


@dataclass(frozen=True, slots=True)
class LabelLine:
    """A line in the order of LABEL_COLUMNS; whether the value is new, and whether any of its messages is surely lost.

    Names and values are on one line, and may hold any character that can be printed.
    """

    cells: tuple[str, ...]
    is_new: bool
    is_bad: bool


def build_label_lines(rows: Iterable[LabelCounts]) -> list[LabelLine]:
    """Return the lines of the counts by label of a node."""
    return [_build_line(row) for row in rows]


def _build_line(row: LabelCounts) -> LabelLine:
    bounds = row.loss, row.loss_lower, row.loss_upper
    ratio = row.loss / row.expected_or_seen if row.expected_or_seen else None
    cells = (
        escape_line(row.label),
        row.said_at,
        escape_line(row.value) if row.kind is LabelValueKind.VALUE else _NO_VALUE[row.kind],
        texts.format_count(row.expected_or_seen),
        loss_bounds.format_bounds(*bounds),
        loss_bounds.format_ratio(ratio, *bounds, texts.format_ratio),
        *(texts.format_count(count) for count in (row.filtered, row.rejected, row.in_flight)),
        *_format_slow(row),
    )
    return LabelLine(cells, row.is_new, row.loss_lower > 0)


def _format_slow(row: LabelCounts) -> tuple[str, str]:
    """Return the slow departures, and their share; none where another node says the value."""
    if row.slow is None or row.departures is None:
        return texts.NONE, texts.NONE
    return texts.format_count(row.slow), texts.format_percent(row.slow, row.departures)


def describe_new_values(node: str, rows: Sequence[LabelCounts], most: int) -> list[str]:
    """Return a sentence for each label of which a node said a value for the first time, with so many of the values."""
    new = [row for row in rows if row.is_new and row.said_at == node]
    sentences = []
    for label in dict.fromkeys(row.label for row in new):
        values = [escape_line(row.value) for row in new if row.label == label]
        more = f" and {len(values) - most} more" if len(values) > most else ""
        sentences.append(f"first seen at {node}: {escape_line(label)} {', '.join(values[:most])}{more}")
    return sentences
