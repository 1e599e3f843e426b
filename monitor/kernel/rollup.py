"""Hours and days: counts of their windows added, digests merged; percentiles are of merged digests and never added.

The law: whatever is rolled up at once or in parts, in any order, has the same counts; its percentiles keep the promise
of :mod:`monitor.kernel.tdigest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from monitor.kernel import tdigest
from monitor.kernel.figures import lag_fields, quantiles_of, ratio
from monitor.kernel.tally import NodeLags
from monitor.results import NodeRollUp, RollUp, Verdict, WindowResult

COUNTS: Final = ("known", "delivered", "filtered", "rejected", "lost", "lost_lower", "in_flight", "recovered")
NODE_COUNTS: Final = (
    *("expected", "seen", "arrived", "departed", "filtered", "rejected"),
    *("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower"),
    *("in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped"),
)
_LAGS: Final = ("lag_in_us", "lag_out_us", "inside_us")


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a pathway a roll-up depends on, by the places of its nodes."""

    is_terminal: tuple[bool, ...]
    is_one_sided: tuple[bool, ...]


Figures = TypeVar("Figures", WindowResult, RollUp)


@dataclass(frozen=True, slots=True)
class Part(Generic[Figures]):
    """A window or a span, and the digests of its nodes in order."""

    figures: Figures
    lags: tuple[NodeLags, ...]


def roll_up(
    shape: Shape, stream: str, start_us: int, parts: Sequence[Part[WindowResult]] | Sequence[Part[RollUp]]
) -> Part[RollUp]:
    """Return the span that begins at ``start_us`` and is made of these parts, windows or shorter spans; at least one.

    What is unknown of one part is unknown of the whole.
    """
    figures = [part.figures for part in parts]
    lags = tuple(
        NodeLags(*(tdigest.merge([getattr(part.lags[place], name) for part in parts]) for name in _LAGS))
        for place in range(len(shape.is_terminal))
    )
    counts = {name: sum(getattr(one, name) for one in figures) for name in COUNTS}
    ends = [of_node.lag_out_us for of_node, ends in zip(lags, shape.is_terminal, strict=True) if ends]
    whole = RollUp(
        stream=stream,
        start_us=start_us,
        windows=sum(1 if isinstance(one, WindowResult) else one.windows for one in figures),
        **{verdict.value.lower(): sum(_judged(one, verdict) for one in figures) for verdict in Verdict},
        **counts,
        lost_upper=_sum([one.lost_upper for one in figures]),
        loss_ratio=ratio(counts["lost"], counts["known"]),
        lag_us=quantiles_of(tdigest.merge(ends)),
        nodes=tuple(_node(shape, place, figures, lags[place]) for place in range(len(lags))),
    )
    return Part(whole, lags)


def _node(shape: Shape, place: int, figures: Sequence[WindowResult | RollUp], lags: NodeLags) -> NodeRollUp:
    nodes = [one.nodes[place] for one in figures]
    counts = {name: sum(getattr(node, name) for node in nodes) for name in NODE_COUNTS}
    # Expected or seen: what was expected and not seen is lost on the way, or was not observed.
    eligible = counts["seen"] + counts["lost_in_transit"] + counts["unobserved"]
    return NodeRollUp(
        node=nodes[0].node,
        **counts,
        loss_upper=_sum([node.loss_upper for node in nodes]),
        loss_ratio=ratio(counts["loss"], eligible),
        **lag_fields(lags, is_one_sided=shape.is_one_sided[place]),
    )


def _judged(one: WindowResult | RollUp, verdict: Verdict) -> int:
    return int(one.verdict is verdict) if isinstance(one, WindowResult) else int(getattr(one, verdict.value.lower()))


def _sum(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None
