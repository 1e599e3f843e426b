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
_NO_LAGS: Final = NodeLags(tdigest.EMPTY, tdigest.EMPTY, tdigest.EMPTY)


@dataclass(frozen=True, slots=True)
class SpanShape:
    """Properties of the nodes of a span that a roll-up depends on, over all versions of the pathway in the span.

    ``nodes`` is the order in which they are shown. ``one_sided`` are those that stamp one side in some version,
    ``terminals`` those that end the pathway in each version that has them, ``mixed`` those that end it in some.
    """

    nodes: tuple[str, ...]
    one_sided: frozenset[str]
    terminals: frozenset[str]
    mixed: frozenset[str] = frozenset()

    @classmethod
    def from_pathways(cls, pathways: Sequence[Pathway]) -> SpanShape:
        """Return the properties of all nodes of the versions of a span, the newest first."""
        ends: dict[str, set[bool]] = {}
        one_sided: set[str] = set()
        for pathway in pathways:
            for node, side in zip(pathway.nodes, pathway.stamps, strict=True):
                ends.setdefault(node, set()).add(node in pathway.terminal_names)
                one_sided |= {node} if side != "both" else set()
        terminals = frozenset(node for node, found in ends.items() if found == {True})
        mixed = frozenset(node for node, found in ends.items() if len(found) > 1)
        return cls(tuple(ends), frozenset(one_sided), terminals, mixed)


Figures = TypeVar("Figures", WindowResult, RollUp)


@dataclass(frozen=True, slots=True)
class SpanPart(Generic[Figures]):
    """A window or a span, and the digests of its nodes in order, with ids and without.

    ``ends`` are the digests of lag_out of the minutes in which a node ended the pathway: None of one that never did,
    and the node's own digest of one that always did. ``count_lags`` is empty where no lag was told by count.
    """

    figures: Figures
    lags: tuple[NodeLags, ...]
    ends: tuple[tdigest.Digest | None, ...]
    count_lags: tuple[CountLags, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of several parts: counts by name, those of each node in order, and digests.

    ``counts`` are windows, those of each verdict, ``COUNTS`` and the upper bound; ``nodes`` have ``NODE_COUNTS`` and
    the upper bound. A bound is none where it is unknown of a part. ``ends`` are those of a :class:`SpanPart`. Without
    ``has_digests`` those of a part are gone, and no lag is known of the sum.
    """

    counts: Mapping[str, int | None]
    names: tuple[str, ...]
    nodes: tuple[Mapping[str, int | None], ...]
    lags: tuple[NodeLags, ...]
    ends: tuple[tdigest.Digest | None, ...]
    has_digests: bool = True


def roll_up(
    shape: SpanShape,
    stream: str,
    start_us: int,
    parts: Sequence[SpanPart[WindowResult]] | Sequence[SpanPart[RollUp]],
) -> SpanPart[RollUp]:
    """Return the span that begins at ``start_us`` and is made of these parts, windows or shorter spans; at least one.

    What is unknown of one part is unknown of the whole. A node that some parts do not have is the sum of the others.
    """
    made = build_roll_up(shape, stream, start_us, add_sums([sum_part(part) for part in parts]))
    counts, count_lags = add_counts([(part.figures, part.count_lags) for part in parts])
    return SpanPart(replace(made.figures, counts=counts), made.lags, made.ends, count_lags)


def add_sums(parts: Sequence[Sums]) -> Sums:
    """Return the sums of parts, at least one, node by node by their names."""
    first, *others = parts
    if not others:
        return first
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    places = [{name: place for place, name in enumerate(part.names)} for part in parts]
    of_nodes = [
        [(part, found[name]) for part, found in zip(parts, places, strict=True) if name in found] for name in names
    ]
    lags = tuple(
        NodeLags(*(tdigest.merge([getattr(part.lags[at], name) for part, at in own]) for name in _DIGESTS))
        for own in of_nodes
    )
    return Sums(
        _add_counts([part.counts for part in parts]),
        names,
        tuple(_add_counts([part.nodes[at] for part, at in own]) for own in of_nodes),
        lags,
        tuple(_merge_ends(own, merged.lag_out_us) for own, merged in zip(of_nodes, lags, strict=True)),
        all(part.has_digests for part in parts),
    )


def _merge_ends(own: Sequence[tuple[Sums, int]], merged: tdigest.Digest) -> tdigest.Digest | None:
    """Return the digest of the parts of a node in which it ended the pathway; ``merged`` is that of all parts."""
    if all(part.ends[at] is part.lags[at].lag_out_us for part, at in own):
        return merged
    ends = [end for part, at in own if (end := part.ends[at]) is not None]
    return tdigest.merge(ends) if ends else None


def select_nodes(sums: Sums, names: Sequence[str]) -> Sums:
    """Return sums with some of their nodes, in their order."""
    places = [place for place, name in enumerate(sums.names) if name in names]
    return Sums(
        sums.counts,
        tuple(sums.names[place] for place in places),
        tuple(sums.nodes[place] for place in places),
        tuple(sums.lags[place] for place in places),
        tuple(sums.ends[place] for place in places),
        sums.has_digests,
    )


def build_roll_up(shape: SpanShape, stream: str, start_us: int, sums: Sums) -> SpanPart[RollUp]:
    """Return the span that begins at ``start_us`` and comes to these sums, without what nodes counted."""
    rank = {name: place for place, name in enumerate(shape.nodes)}
    order = sorted(range(len(sums.names)), key=lambda place: (rank.get(sums.names[place], len(rank)), place))
    ends = tuple(sums.ends[place] for place in order)
    whole = RollUp(
        stream=stream,
        start_us=start_us,
        **cast("dict[str, Any]", dict(sums.counts)),
        loss_ratio=ratio(_known(sums.counts["lost"]), _known(sums.counts["known"])),
        lag_us=quantiles_of(tdigest.merge([end for end in ends if end is not None])) if sums.has_digests else None,
        nodes=tuple(_build_node(shape, place, sums) for place in order),
    )
    return SpanPart(whole, tuple(sums.lags[place] for place in order), ends)


def sum_part(part: SpanPart[WindowResult] | SpanPart[RollUp]) -> Sums:
    """Return the sums of one part."""
    one = part.figures
    counts: dict[str, int | None] = {"windows": 1 if isinstance(one, WindowResult) else one.windows}
    counts |= {verdict.value.lower(): _count_verdict(one, verdict) for verdict in Verdict}
    counts |= {name: getattr(one, name) for name in (*COUNTS, "lost_upper")}
    nodes = tuple({name: getattr(node, name) for name in (*NODE_COUNTS, "loss_upper")} for node in one.nodes)
    return Sums(counts, tuple(node.node for node in one.nodes), nodes, part.lags, part.ends)


def _add_counts(counts: Sequence[Mapping[str, int | None]]) -> dict[str, int | None]:
    return {name: _add_bounds([one[name] for one in counts]) for name in counts[0]}


def _build_node(shape: SpanShape, place: int, sums: Sums) -> NodeRollUp:
    counts = sums.nodes[place]
    # Expected or seen: what was expected and not seen is lost on the way, or was not observed.
    eligible = sum(_known(counts[name]) for name in ("seen", "lost_in_transit", "unobserved"))
    return NodeRollUp(
        node=sums.names[place],
        **cast("dict[str, Any]", dict(counts)),
        loss_ratio=ratio(_known(counts["loss"]), eligible),
        **lag_fields(
            sums.lags[place] if sums.has_digests else _NO_LAGS, is_one_sided=sums.names[place] in shape.one_sided
        ),
    )


def _known(count: int | None) -> int:
    """Return a count that is no bound, and so is known."""
    return 0 if count is None else count


def _count_verdict(one: WindowResult | RollUp, verdict: Verdict) -> int:
    return int(one.verdict is verdict) if isinstance(one, WindowResult) else int(getattr(one, verdict.value.lower()))


def _add_bounds(bounds: Sequence[int | None]) -> int | None:
    known = [bound for bound in bounds if bound is not None]
    return sum(known) if len(known) == len(bounds) else None
