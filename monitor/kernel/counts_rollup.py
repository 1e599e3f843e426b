"""Hours and days of nodes that only count: sums of their windows, and what all windows together show.

The law: as of all that is rolled up, in whatever order and groups the parts come, the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from hopwatch.monitor.kernel.completeness import bound_loss
from hopwatch.monitor.kernel.count_lags import CountLags, merge_count_lags
from hopwatch.monitor.kernel.reconciliation import MAX_SHOWN
from hopwatch.monitor.results import CountsRollUp, NodeCounts, RollUp, Verdict, WindowResult

_SUMS: Final = ("arrived", "departed", "bytes", "dropped", "lost_before_lower")


def add_counts(
    parts: Sequence[tuple[WindowResult | RollUp, Sequence[CountLags]]],
) -> tuple[tuple[CountsRollUp, ...], tuple[CountLags, ...]]:
    """Return what nodes counted in all parts, windows or shorter spans of a stream, in the pathway's order; and lags.

    Each part has the digests of its counting nodes, or none as it was stored before lags were read. One that does not
    have a node, as it was rolled up before counts were, leaves open what is not a sum.
    """
    told = [{one.node: one for one in _list_counts(part)} for part, _ in parts]
    digests = [dict(zip((one.node for one in part.counts), lags, strict=False)) for part, lags in parts]
    names = dict.fromkeys(name for of_part in told for name in of_part)
    merged = tuple(merge_count_lags([of_part[name] for of_part in digests if name in of_part]) for name in names)
    counts = (_add_node([of_part.get(name) for of_part in told]) for name in names)
    return tuple(replace(one, **lags.figures) for one, lags in zip(counts, merged, strict=True)), merged


def _list_counts(part: WindowResult | RollUp) -> Iterator[CountsRollUp]:
    if isinstance(part, RollUp):
        yield from part.counts
        return
    for one in part.counts:
        yield _open_span(one, part.verdict)


def _open_span(one: NodeCounts, verdict: Verdict | None) -> CountsRollUp:
    """Return what a node counted in a single window."""
    _, upper = bound_loss(verdict, 0, None)
    names = (field.name for field in fields(CountsRollUp) if field.name != "lost_before_upper")
    alike = {name: getattr(one, name) for name in names}
    return CountsRollUp(**alike, lost_before_upper=upper)


def _add_node(parts: Sequence[CountsRollUp | None]) -> CountsRollUp:
    """Return the sums of the parts that have a node; at least one has."""
    known = [one for one in parts if one is not None]
    first = known[0]
    sums: dict[str, Any] = {name: _add([getattr(one, name) for one in known]) for name in _SUMS}
    return CountsRollUp(
        node=first.node,
        **sums,
        before=first.before,
        left_before=_add_known([one.left_before for one in known]),
        same_before=_all_true([None if one is None else one.same_before for one in parts]),
        lost_before_upper=_add_known([None if one is None else one.lost_before_upper for one in parts]),
        behind=first.behind,
        seen_behind=_add_known([one.seen_behind for one in known]),
        same_behind=_all_true([None if one is None else one.same_behind for one in parts]),
    )


def _add(counts: Sequence[int]) -> int:
    """Return a sum, at most what a count is shown as."""
    return min(sum(counts), MAX_SHOWN)


def _add_known(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return _add(known) if len(known) == len(counts) else None


def _all_true(facts: Sequence[bool | None]) -> bool | None:
    """Return whether all are true: one that is false decides, and without it one that is unknown."""
    if False in facts:
        return False
    return None if None in facts else True
