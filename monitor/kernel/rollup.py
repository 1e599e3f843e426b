"""Hours and days: counts of their windows added, digests merged; percentiles are of merged digests and never added.

The law: whatever is rolled up at once or in parts, in any order, has the same counts; its percentiles keep the promise
of :mod:`monitor.kernel.tdigest`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Generic, TypeVar, cast

from hopwatch.monitor.kernel import tdigest
from hopwatch.monitor.kernel.count_lags import CountLags
from hopwatch.monitor.kernel.counts_rollup import add_counts
from hopwatch.monitor.kernel.figures import lag_fields, quantiles_of, ratio
from hopwatch.monitor.kernel.tally import NodeLags
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import NodeRollUp, RollUp, Verdict, WindowResult

COUNTS: Final = (
    *("known", "delivered", "filtered", "rejected", "lost", "partial", "lost_lower"),
    *("in_flight", "recovered", "deferred"),
)
NODE_COUNTS: Final = (
    *("expected", "seen", "arrived", "departed", "filtered", "rejected"),
    *("lost_in_transit", "lost_inside", "lost_after", "loss", "loss_lower"),
    *("in_flight", "unobserved", "orphans", "duplicates_in", "duplicates_out", "lag_negative", "dropped", "deferred"),
    "inversions",
)
_DIGESTS: Final = tuple(field.name for field in fields(NodeLags))


@dataclass(frozen=True, slots=True)
class PathwayShape:
    """Properties of a pathway's nodes that a roll-up depends on, in the order of the nodes."""

    is_terminal: tuple[bool, ...]
    is_one_sided: tuple[bool, ...]

    @classmethod
    def from_pathway(cls, pathway: Pathway) -> PathwayShape:
        """Return the properties of all nodes of a pathway."""
        return cls(tuple(pathway.terminals.tolist()), tuple(side != "both" for side in pathway.stamps))

    def select_places(self, places: Sequence[int]) -> PathwayShape:
        """Return it for some of the nodes."""
        return PathwayShape(
            tuple(self.is_terminal[place] for place in places), tuple(self.is_one_sided[place] for place in places)
        )


Figures = TypeVar("Figures", WindowResult, RollUp)


@dataclass(frozen=True, slots=True)
class SpanPart(Generic[Figures]):
    """A window or a span, and the digests of its nodes in order, with ids and without.

    ``count_lags`` is empty where no lag was told by count.
    """

    figures: Figures
    lags: tuple[NodeLags, ...]
    count_lags: tuple[CountLags, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of several parts: counts by name, those of each node in order, and digests.

    ``counts`` are windows, those of each verdict, ``COUNTS`` and the upper bound; ``nodes`` have ``NODE_COUNTS`` and
    the upper bound. A bound is none where it is unknown of a part.
    """

    counts: Mapping[str, int | None]
    names: tuple[str, ...]
    nodes: tuple[Mapping[str, int | None], ...]
    lags: tuple[NodeLags, ...]


def roll_up(
    shape: PathwayShape,
    stream: str,
    start_us: int,
    parts: Sequence[SpanPart[WindowResult]] | Sequence[SpanPart[RollUp]],
) -> SpanPart[RollUp]:
    """Return the span that begins at ``start_us`` and is made of these parts, windows or shorter spans; at least one.

    What is unknown of one part is unknown of the whole.
    """
    made = build_roll_up(shape, stream, start_us, add_sums([_sum_part(part) for part in parts]))
    counts, count_lags = add_counts([(part.figures, part.count_lags) for part in parts])
    return SpanPart(replace(made.figures, counts=counts), made.lags, count_lags)


def add_sums(parts: Sequence[Sums]) -> Sums:
    """Return the sums of parts, at least one, of the same nodes."""
    first, *others = parts
    if not others:
        return first
    places = range(len(first.names))
    return Sums(
        _add_counts([part.counts for part in parts]),
        first.names,
        tuple(_add_counts([part.nodes[place] for part in parts]) for place in places),
        tuple(
            NodeLags(*(tdigest.merge([getattr(part.lags[place], name) for part in parts]) for name in _DIGESTS))
            for place in places
        ),
    )


def select_nodes(sums: Sums, places: Sequence[int]) -> Sums:
    """Return sums with some of their nodes."""
    return Sums(
        sums.counts,
        tuple(sums.names[place] for place in places),
        tuple(sums.nodes[place] for place in places),
        tuple(sums.lags[place] for place in places),
    )


def build_roll_up(shape: PathwayShape, stream: str, start_us: int, sums: Sums) -> SpanPart[RollUp]:
    """Return the span that begins at ``start_us`` and comes to these sums, without what nodes counted."""
    ends = [of_node.lag_out_us for of_node, ends in zip(sums.lags, shape.is_terminal, strict=True) if ends]
    whole = RollUp(
        stream=stream,
        start_us=start_us,
        **cast("dict[str, Any]", dict(sums.counts)),
        loss_ratio=ratio(_known(sums.counts["lost"]), _known(sums.counts["known"])),
        lag_us=quantiles_of(tdigest.merge(ends)),
        nodes=tuple(_build_node(shape, place, sums) for place in range(len(sums.names))),
    )
    return SpanPart(whole, sums.lags)


def _sum_part(part: SpanPart[WindowResult] | SpanPart[RollUp]) -> Sums:
    one = part.figures
    counts: dict[str, int | None] = {"windows": 1 if isinstance(one, WindowResult) else one.windows}
    counts |= {verdict.value.lower(): _count_verdict(one, verdict) for verdict in Verdict}
    counts |= {name: getattr(one, name) for name in (*COUNTS, "lost_upper")}
    nodes = tuple({name: getattr(node, name) for name in (*NODE_COUNTS, "loss_upper")} for node in one.nodes)
    return Sums(counts, tuple(node.node for node in one.nodes), nodes, part.lags)


def _add_counts(counts: Sequence[Mapping[str, int | None]]) -> dict[str, int | None]:
    return {name: _add_bounds([one[name] for one in counts]) for name in counts[0]}


def _build_node(shape: PathwayShape, place: int, sums: Sums) -> NodeRollUp:
    counts = sums.nodes[place]
    # Expected or seen: what was expected and not seen is lost on the way, or was not observed.
    eligible = sum(_known(counts[name]) for name in ("seen", "lost_in_transit", "unobserved"))
    return NodeRollUp(
        node=sums.names[place],
        **cast("dict[str, Any]", dict(counts)),
        loss_ratio=ratio(_known(counts["loss"]), eligible),
        **lag_fields(sums.lags[place], is_one_sided=shape.is_one_sided[place]),
    )


def _known(count: int | None) -> int:
    """Return a count that is no bound, and so is known."""
    return 0 if count is None else count


def _count_verdict(one: WindowResult | RollUp, verdict: Verdict) -> int:
    return int(one.verdict is verdict) if isinstance(one, WindowResult) else int(getattr(one, verdict.value.lower()))


def _add_bounds(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None
