"""The sets of one stream and window, each written as its row in SEMANTICS.md defines it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.model.pathway import Pathway
from tests.model.record import DEFERRED, FILTERED, REJECTED, Observation

Ids = frozenset[bytes]
NONE: Ids = frozenset()


@dataclass(slots=True)
class AtNode:
    """Observations at one node: ids by stamp and outcome, lags in µs one a stamp."""

    came: set[bytes] = field(default_factory=set)
    left: set[bytes] = field(default_factory=set)
    left_only: set[bytes] = field(default_factory=set)
    """Of which nothing but departures was observed."""
    seen: set[bytes] = field(default_factory=set)
    filtered: set[bytes] = field(default_factory=set)
    rejected: set[bytes] = field(default_factory=set)
    deferred: set[bytes] = field(default_factory=set)
    stamped_in: set[bytes] = field(default_factory=set)
    """Stamped `in` by an observation that does not defer."""
    lags_in_us: list[int] = field(default_factory=list)
    lags_out_us: list[int] = field(default_factory=list)
    inside_us: list[int] = field(default_factory=list)
    slowest_us: dict[bytes, int] = field(default_factory=dict)
    """The greatest lag at departure of each message that left."""

    def add(self, observation: Observation, *, one_sided: bool) -> None:
        """Take in one observation; at a one-sided node any stamp counts for both."""
        message_id, lag_in_us, lag_out_us = observation.message_id, observation.lag_in_us, observation.lag_out_us
        is_departure = not one_sided and lag_in_us is None and observation.passed
        if is_departure and message_id not in self.seen:
            self.left_only.add(message_id)
        if not is_departure:
            self.left_only.discard(message_id)
        if one_sided:
            lag_in_us = observation.lag_out_us if lag_in_us is None else lag_in_us
            lag_out_us = observation.lag_in_us if lag_out_us is None else lag_out_us
        self.seen.add(message_id)
        if observation.outcome == FILTERED:
            self.filtered.add(message_id)
        if observation.outcome == REJECTED:
            self.rejected.add(message_id)
        if observation.outcome == DEFERRED:
            self.deferred.add(message_id)
            self.came.add(message_id)
        elif lag_in_us is not None:
            self.came.add(message_id)
            self.stamped_in.add(message_id)
            self.lags_in_us.append(lag_in_us)
        if lag_out_us is not None and observation.passed:
            self.left.add(message_id)
            self.lags_out_us.append(lag_out_us)
            self.slowest_us[message_id] = max(lag_out_us, self.slowest_us.get(message_id, lag_out_us))
        if lag_in_us is not None and lag_out_us is not None and observation.passed and not one_sided:
            self.inside_us.append(max(-(2**63), min(lag_out_us - lag_in_us, 2**63 - 1)))


class WindowSets:
    """All sets of a window; every method is one definition."""

    def __init__(self, pathway: Pathway, observed: Iterable[tuple[str, Observation]]) -> None:
        """Sort (node, observation) by node."""
        self.pathway = pathway
        self.at = {node: AtNode() for node in pathway.nodes}
        for node, observation in observed:
            self.at[node].add(observation, one_sided=node in pathway.one_sided)

    def came(self, node: str) -> Ids:
        """Give what is stamped `in` at N."""
        return frozenset(self.at[node].came)

    def left(self, node: str) -> Ids:
        """Give what is stamped `out` at N and passed."""
        return frozenset(self.at[node].left)

    def seen(self, node: str) -> Ids:
        """Give what is observed at N in any way."""
        return frozenset(self.at[node].seen)

    def after(self, node: str) -> Ids:
        """Give what is seen at any node downstream."""
        return NONE.union(*(self.seen(below) for below in self.pathway.downstream(node)))

    def stopped(self, node: str) -> Ids:
        """Give what ends at N on purpose: filtered or rejected there, and neither let go on nor seen below."""
        return frozenset(self.at[node].filtered | self.at[node].rejected) - self.left(node) - self.after(node)

    def rejected(self, node: str) -> Ids:
        """Give those of stopped(N) that were rejected; one that is both counts as rejected."""
        return self.stopped(node) & self.at[node].rejected

    def deferred(self, node: str) -> Ids:
        """Give what N keeps for a later try: it neither left, nor was stopped, nor is it seen below."""
        return frozenset(self.at[node].deferred) - self.left(node) - self.stopped(node) - self.after(node)

    def expected(self, node: str) -> Ids:
        """Give what must have come to N, by name `E(N)`."""
        feeders = self.pathway.must_come_from(node)
        return NONE.union(*(self.left(feeder) for feeder in feeders)) if feeders else self.seen(node)

    def lost_in_transit(self, node: str) -> Ids:
        """Give what is lost on the way to N."""
        return self.expected(node) - self.seen(node) - self.after(node)

    def lost_inside(self, node: str) -> Ids:
        """Give what came to N and went nowhere."""
        return self.came(node) - self.left(node) - self.stopped(node) - self.after(node)

    def lost_after_group(self, node: str, group: frozenset[str]) -> Ids:
        """Give what left a branch and is seen at none of the group's nodes nor below them."""
        return self.left(node) - NONE.union(*(self.seen(to) | self.after(to) for to in group))

    def lost_after(self, node: str) -> Ids:
        """Give what is lost after N at any of its one-of groups."""
        return NONE.union(*(self.lost_after_group(node, group) for group in self.pathway.one_of[node]))

    def lost_at(self, node: str) -> Ids:
        """Give the loss of N: the three added, which have no id in common."""
        return self.lost_in_transit(node) | self.lost_inside(node) | self.lost_after(node)

    def unobserved(self, node: str) -> Ids:
        """Give what N's probe missed and a node below saw."""
        return (self.expected(node) - self.seen(node)) & self.after(node)

    def orphans(self, node: str) -> Ids:
        """Give what is seen at N and at no node upstream; an origin has none."""
        above = self.pathway.upstream(node)
        return self.seen(node) - NONE.union(*(self.seen(other) for other in above)) if above else NONE

    def unleft(self, node: str) -> Ids:
        """Give what is seen at N, and at a node upstream that it is not seen to leave."""
        above = self.pathway.upstream(node)
        return self.seen(node) & NONE.union(*(self.seen(other) - self.left(other) for other in above))

    def known(self) -> Ids:
        """Give what is seen anywhere."""
        return NONE.union(*(self.seen(node) for node in self.pathway.nodes))

    def left_a_terminal(self) -> Ids:
        """Give what left a terminal."""
        return NONE.union(*(self.left(node) for node in self.pathway.terminals))

    def lost(self) -> Ids:
        """Give what is lost end to end: what is lost at some node."""
        return NONE.union(*(self.lost_at(node) for node in self.pathway.nodes))

    def partial(self) -> Ids:
        """Give those of the lost that left a terminal all the same."""
        return self.lost() & self.left_a_terminal()

    def delivered(self) -> Ids:
        """Give what left a terminal and is lost nowhere."""
        return self.left_a_terminal() - self.lost()

    def stopped_anywhere(self) -> Ids:
        """Give what was stopped somewhere, and is neither lost nor delivered."""
        return NONE.union(*(self.stopped(node) for node in self.pathway.nodes)) - self.lost() - self.delivered()

    def rejected_anywhere(self) -> Ids:
        """Give those of what was stopped that a node stopped by rejecting it."""
        return self.stopped_anywhere() & NONE.union(*(self.rejected(node) for node in self.pathway.nodes))
