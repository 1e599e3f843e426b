"""Comparison of a new version at a node with the others, asked of the store: for ``hopwatch compare`` and the page.

A version is a value of a label, ``version`` unless another one is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.kernel.comparison import (
    ComparisonVerdict,
    ShareDifference,
    WindowShares,
    compare_shares,
    judge_difference,
)
from hopwatch.monitor.results import LabelCounts, LabelValueKind, format_iso
from hopwatch.monitor.store import reader
from hopwatch.monitor.store.label_counts import VERSION_LABEL, read_own_counts, read_values
from hopwatch.monitor.texts.escaping import escape_line
from hopwatch.probes.contract.limits import WINDOW_US

MAX_LOSS_INCREASE: Final = 0.001
"""Share of a candidate's messages that may be lost beyond the baseline's."""
MAX_SLOW_INCREASE: Final = 0.05
"""Share of a candidate's departures that may be slow beyond the baseline's: twice as many as are slow of all."""
MAX_SPAN_US: Final = 86_400_000_000
"""Range that is compared where none is asked for."""


class ComparisonQuery(NamedTuple):
    """Candidate at a node, and what it is compared with: another value, or all other values if it is None.

    Without a candidate it is the newest value of the label. Final windows that start in ``[from_us, to_us)`` count;
    without ``from_us`` those of MAX_SPAN_US before ``to_us``, or before the newest final one.
    """

    stream: str
    node: str
    label: str = VERSION_LABEL
    candidate: str | None = None
    baseline: str | None = None
    from_us: int | None = None
    to_us: int | None = None
    max_loss_increase: float = MAX_LOSS_INCREASE
    max_slow_increase: float = MAX_SLOW_INCREASE


class ShareComparison(NamedTuple):
    """Comparison of a share of messages: the difference, if enough windows tell it, and the verdict on it.

    ``unknown`` are messages of the candidate in windows that do not tell what is lost.
    """

    verdict: ComparisonVerdict
    difference: ShareDifference | None
    unknown: int = 0


class VersionComparison(NamedTuple):
    """Comparison of a candidate with a baseline at a node.

    So many ``windows`` have messages of the candidate, the first starts at ``from_us``, and the last ends at ``to_us``;
    both are None without any. ``slow`` is None where no departure of the candidate is stamped.
    """

    query: ComparisonQuery
    candidate: str
    windows: int
    from_us: int | None
    to_us: int | None
    loss: ShareComparison
    slow: ShareComparison | None

    @property
    def verdict(self) -> ComparisonVerdict:
        """Verdict on both: worse if one is, not worse if both are not, else unknown."""
        found = {one.verdict for one in (self.loss, self.slow) if one is not None}
        if ComparisonVerdict.WORSE in found:
            return ComparisonVerdict.WORSE
        return ComparisonVerdict.UNKNOWN if ComparisonVerdict.UNKNOWN in found else ComparisonVerdict.NOT_WORSE


class _WindowRows(NamedTuple):
    """Rows of a candidate and of its baseline in a window."""

    own: Sequence[LabelCounts]
    other: Sequence[LabelCounts]

    @property
    def is_known(self) -> bool:
        """True if the rows of both tell exactly what is lost."""
        return all(row.loss_lower == row.loss == row.loss_upper for row in (*self.own, *self.other))


def read_comparison(connection: Connection, query: ComparisonQuery) -> VersionComparison:
    """Compare a candidate with its baseline.

    Raises:
        ConfigurationError: no candidate is named, and the node does not say two values of the label; or candidate and
            baseline are the same.
        StoreError: the store cannot be read.
    """
    candidate = _find_newest(connection, query) if query.candidate is None else query.candidate
    if candidate == query.baseline:
        told = f"the {escape_line(query.label)} {escape_line(candidate)}"
        raise ConfigurationError(f"{told} is both the candidate and the baseline: name two values")
    found = read_own_counts(connection, query.stream, query.node, query.label, _choose_span(connection, query))
    chosen = [(start_us, _choose_rows(rows, candidate, query.baseline)) for start_us, rows in found]
    starts_us = [start_us for start_us, rows in chosen if rows.own]
    windows = [rows for _, rows in chosen if rows.own]
    return VersionComparison(
        query,
        candidate,
        len(windows),
        starts_us[0] if starts_us else None,
        starts_us[-1] + WINDOW_US if starts_us else None,
        _compare_loss(query, windows),
        _compare_lag(query, windows),
    )


def _choose_span(connection: Connection, query: ComparisonQuery) -> tuple[int | None, int | None]:
    end_us = query.to_us
    if query.from_us is None and end_us is None:
        newest_us = reader.read_newest_final_us(connection, query.stream)
        end_us = None if newest_us is None else newest_us + WINDOW_US
    from_us = end_us - MAX_SPAN_US if query.from_us is None and end_us is not None else query.from_us
    return from_us, query.to_us


def _find_newest(connection: Connection, query: ComparisonQuery) -> str:
    """Return the value that came last; of several that came at once the last by name."""
    values = read_values(connection, query.stream, query.node, query.label)
    if len(values) > 1:
        return max(values, key=lambda value: (values[value], value))
    label = escape_line(query.label)
    has = f"one {label} alone, {escape_line(next(iter(values)))}" if values else f"no value of the label {label}"
    raise ConfigurationError(
        f"{query.node} of {query.stream} has said {has}: there is nothing to compare; "
        "name a candidate, or let its probes send that label"
    )


def _choose_rows(rows: Iterable[LabelCounts], candidate: str, baseline: str | None) -> _WindowRows:
    values = [row for row in rows if row.kind is LabelValueKind.VALUE]
    own = [row for row in values if row.value == candidate]
    is_all = baseline is None
    return _WindowRows(own, [row for row in values if row.value != candidate and (is_all or row.value == baseline)])


def _compare_loss(query: ComparisonQuery, windows: Iterable[_WindowRows]) -> ShareComparison:
    known, unknown, messages = list[WindowShares](), 0, 0
    for one in windows:
        shares = WindowShares(*_sum_losses(one.own), *_sum_losses(one.other))
        messages += shares.messages
        if one.is_known:
            known.append(shares)
        else:
            unknown += shares.messages
    difference = compare_shares(known)
    unsure = unknown / max(1, messages)
    return ShareComparison(judge_difference(difference, query.max_loss_increase, unsure), difference, unknown)


def _compare_lag(query: ComparisonQuery, windows: Iterable[_WindowRows]) -> ShareComparison | None:
    shares = [WindowShares(*_sum_slow(one.own), *_sum_slow(one.other)) for one in windows]
    if not any(one.messages for one in shares):
        return None
    difference = compare_shares(shares)
    return ShareComparison(judge_difference(difference, query.max_slow_increase), difference)


def _sum_losses(rows: Iterable[LabelCounts]) -> tuple[int, int]:
    pairs = [(row.loss, row.expected_or_seen - row.in_flight) for row in rows]
    return sum(lost for lost, _ in pairs), sum(settled for _, settled in pairs)


def _sum_slow(rows: Iterable[LabelCounts]) -> tuple[int, int]:
    pairs = [(row.slow or 0, row.departures or 0) for row in rows]
    return sum(slow for slow, _ in pairs), sum(departures for _, departures in pairs)


def comparison_to_json(found: VersionComparison) -> dict[str, Any]:
    """Return a comparison as ``hopwatch compare --json`` and the API show it."""
    query = found.query
    return {
        "stream": query.stream,
        "node": query.node,
        "label": query.label,
        "candidate": found.candidate,
        "baseline": query.baseline,
        "from": None if found.from_us is None else format_iso(found.from_us),
        "to": None if found.to_us is None else format_iso(found.to_us),
        "windows": found.windows,
        "verdict": found.verdict.value,
        "loss": _share_to_json(found.loss, query.max_loss_increase),
        "slow": None if found.slow is None else _share_to_json(found.slow, query.max_slow_increase),
    }


def _share_to_json(one: ShareComparison, tolerance: float) -> dict[str, Any]:
    difference = None if one.difference is None else one.difference._asdict()
    return {"verdict": one.verdict.value, "max_increase": tolerance, "unknown": one.unknown, "difference": difference}
