"""Windows of which the truth is known, and what probes with accounts of every kind tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from hypothesis import strategies as st

from hopwatch.monitor.kernel.bounds import NodeBooks
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import NEVER_US, build_tally, instance_name
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import Status, WindowResult
from tests.laws.strategies import ANY_PATH
from tests.support.batch_arrays import message_batches


@dataclass
class Truth:
    """Truth about one message: its stamp at each node, and the nodes that lost it."""

    stamps: dict[int, str] = field(default_factory=dict)
    lost_at: set[int] = field(default_factory=set)


@st.composite
def truths(draw: st.DrawFn, pathway: Pathway) -> Truth:
    """Let a message go its ways from an origin: on each it may be lost, at each node it may be lost or stopped."""
    truth = Truth()
    waiting = [draw(st.sampled_from(np.flatnonzero(pathway.origins).tolist()))]
    while waiting:
        node = waiting.pop()
        if node in truth.stamps:
            continue
        fate = truth.stamps[node] = draw(st.sampled_from(["io", "io", "io", "i", "if"]))
        if fate == "i":
            truth.lost_at.add(node)
        if fate == "io":
            waiting += draw(_next_nodes(pathway, node, truth.lost_at))
    return truth


@st.composite
def _next_nodes(draw: st.DrawFn, pathway: Pathway, node: int, lost_at: set[int]) -> list[int]:
    """Choose where a message goes, arrow by arrow; what is lost on the way is noted where SEMANTICS.md counts it."""
    found = []
    for group in (group for group in pathway.groups if group.source == node):
        target = draw(st.sampled_from(group.targets))
        if draw(st.integers(0, 3)):
            found.append(target)
        else:
            lost_at.add(target if group.is_must else node)
    return found


# What an instance may be: complete; told, with drops, with implausible observations, or with some that were reported
# under a node that is not declared; heard, with a hole; silent, with a say; or not there at all.
HEARD: Final = "cdauh"
RENAMED: Final = np.uint64(1_000_000)


@dataclass
class ToldWindow:
    """A pathway, what happened, what the monitor was told of it, and what the books of each node are worth."""

    pathway: Pathway
    truths: list[Truth]
    told: list[list[str]]
    accounts: list[str]
    names: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By which type of id each replica of a node calls messages that arrive, and those that depart."""

    @property
    def books(self) -> NodeBooks:
        """Return the books that follow from the accounts, with the true numbers of drops."""
        having, heard, told, complete = (
            [int(account in kinds) for account in self.accounts] for kinds in ("cdauhs", HEARD, "cdau", "cau")
        )
        hidden = [
            sum(
                node in truth.stamps and words[node] == "-" for truth, words in zip(self.truths, self.told, strict=True)
            )
            for node in range(len(self.accounts))
        ]
        dropped, aside, elsewhere = (
            [max(1, count) * (kind == letter) for count, kind in zip(hidden, self.accounts, strict=True)]
            for letter in "dau"
        )
        # What an undeclared node reports may be any node's.
        unplaced = [sum(elsewhere)] * len(elsewhere)
        columns = (having, heard, told, complete, dropped, aside, unplaced)
        return NodeBooks(*(np.array(column, np.int64) for column in columns))

    def concluded(self) -> WindowResult:
        """Judge what was told, when nothing is in flight any more."""
        ways = (" ".join(words) for words in self.told)
        observed = [named for batch in message_batches(*ways) for named in _named(batch, self.names)]
        tally = build_tally(self.pathway, observed, NEVER_US)
        undeclared = ("elsewhere",) if "u" in self.accounts else ()
        return conclude_window(self.pathway, WindowStage("s", 0, Status.FINAL), tally, self.books, undeclared)

    @property
    def is_known(self) -> bool:
        """Return whether no observation was set aside as implausible, or is of an undeclared node."""
        return not {"a", "u"} & set(self.accounts)

    @property
    def lost(self) -> int:
        """Return the true number of lost messages, as if every stamp were reported."""
        return self.true_result().lost

    def true_result(self) -> WindowResult:
        """Judge what happened, as if every stamp were reported."""
        nodes = range(len(self.pathway.nodes))
        told = [[truth.stamps.get(node, "-") for node in nodes] for truth in self.truths]
        return replace(self, told=told, accounts=["c" for _ in nodes]).concluded()


@st.composite
def told_windows(draw: st.DrawFn, kinds: str = "cccdauhs-") -> ToldWindow:
    """Draw what happened, and what of it the probes of each node told."""
    pathway = Pathway.parse(draw(ANY_PATH))
    nodes = range(len(pathway.nodes))
    accounts = [draw(st.sampled_from(kinds)) for _ in nodes]
    happened = draw(st.lists(truths(pathway), max_size=4))
    told = [[draw(_told(accounts[node], truth.stamps.get(node, "-"))) for node in nodes] for truth in happened]
    return ToldWindow(pathway, happened, told, accounts)


def _told(account: str, stamp: str) -> st.SearchStrategy[str]:
    """Choose what of a stamp reached the monitor: where batches are missing, it may be one side alone."""
    if account == "c" or stamp == "-":
        return st.just(stamp)
    if account not in HEARD:
        return st.just("-")
    return st.sampled_from([stamp, "-", *(stamp if (account, stamp) == ("h", "io") else "")])


def _named(batch: ObservedBatch, names: Mapping[tuple[int, int], tuple[int, int]]) -> Iterator[ObservedBatch]:
    """Yield what one of two replicas of a node tells of a message; arrival and departure apart, if by other ids."""
    replica = int(batch.message_ids[0, 1].byteswap()) % 2
    instance = instance_name(str(batch.node), f"p{replica}", 0)
    came, left = names.get((batch.node, replica), (0, 0))
    batch, none = batch._replace(instance=instance), np.empty(0, np.int64)
    if came == left:
        yield _renamed(batch, came)
        return
    if len(batch.lag_in_us):
        yield _renamed(batch._replace(lag_out_us=none), came)
    if len(batch.lag_out_us):
        yield _renamed(batch._replace(lag_in_us=none), left)


def _renamed(batch: ObservedBatch, name: int) -> ObservedBatch:
    return batch._replace(message_ids=batch.message_ids + RENAMED * np.uint64(name))
