"""Laws of the verdict: no false loss, whatever the monitor was not told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.tally import NEVER_US, ObservedBatch, build_tally, instance_name
from hopwatch.monitor.kernel.verdict import NodeBooks, WindowStage, conclude_window
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import Status, Verdict, WindowResult
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
class Window:
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
        nodes = range(len(self.pathway.nodes))
        told = [[truth.stamps.get(node, "-") for node in nodes] for truth in self.truths]
        return replace(self, told=told, accounts=["c" for _ in nodes]).concluded().lost


@st.composite
def windows(draw: st.DrawFn, kinds: str = "cccdauhs-") -> Window:
    """Draw what happened, and what of it the probes of each node told."""
    pathway = Pathway.parse(draw(ANY_PATH))
    nodes = range(len(pathway.nodes))
    accounts = [draw(st.sampled_from(kinds)) for _ in nodes]
    happened = draw(st.lists(truths(pathway), max_size=4))
    told = [[draw(_told(accounts[node], truth.stamps.get(node, "-"))) for node in nodes] for truth in happened]
    return Window(pathway, happened, told, accounts)


def _told(account: str, stamp: str) -> st.SearchStrategy[str]:
    """Choose what of a stamp reached the monitor: where batches are missing, it may be one side alone."""
    if account == "c" or stamp == "-":
        return st.just(stamp)
    if account not in HEARD:
        return st.just("-")
    return st.sampled_from([stamp, "-", *(stamp if (account, stamp) == ("h", "io") else "")])


@given(windows())
def test_a_lower_bound_claims_no_more_than_was_lost(window: Window) -> None:
    """No false loss: at no node and not end to end, whatever is missing from the accounts."""
    result = window.concluded()
    for place, node in enumerate(result.nodes):
        assert node.loss_lower <= sum(place in truth.lost_at for truth in window.truths)
    assert result.lost_lower <= sum(bool(truth.lost_at) for truth in window.truths)


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


IDS: Final = st.integers(0, 2)


@given(windows("cccd"), st.data())
def test_other_ids_are_no_loss(window: Window, data: st.DataObject) -> None:
    """Replicas may call messages otherwise than those before them: what was lost is unknown then, never made up."""
    replicas = [(node, replica) for node in range(len(window.accounts)) for replica in (0, 1)]
    names = data.draw(st.dictionaries(st.sampled_from(replicas), st.tuples(IDS, IDS)))
    result = replace(window, names=names).concluded()
    for place, node in enumerate(result.nodes):
        assert node.loss_lower <= sum(place in truth.lost_at for truth in window.truths)


@given(windows("cccdhs-"))
def test_an_upper_bound_end_to_end_holds_all_that_was_lost(window: Window) -> None:
    """The upper bound of loss end to end, if there is one, is at least the true loss."""
    upper = window.concluded().lost_upper
    assert upper is None or window.lost <= upper


@given(windows())
def test_lower_bounds_are_no_more_than_what_is_missing(window: Window) -> None:
    """The figure that is shown lies between its bounds."""
    result = window.concluded()
    bounds = [(node.loss_lower, node.loss, node.loss_upper) for node in result.nodes]
    for lower, shown, upper in [*bounds, (result.lost_lower, result.lost, result.lost_upper)]:
        assert 0 <= lower <= shown
        assert upper is None or shown <= upper


@given(windows("c"))
def test_with_complete_books_all_is_known(window: Window) -> None:
    """Bounds meet at the truth, and the verdict is LOSSY, CLEAN or IDLE."""
    result = window.concluded()
    assert result.lost_lower == result.lost == result.lost_upper
    assert all(node.loss_lower == node.loss == node.loss_upper for node in result.nodes)
    assert result.verdict in (Verdict.LOSSY, Verdict.CLEAN, Verdict.IDLE)
    assert result.reasons == ()


MEANING: Final = {
    Verdict.SILENT: lambda window: not any(account in HEARD for account in window.accounts),
    Verdict.IDLE: lambda window: not (window.truths and window.is_known),
    Verdict.LOSSY: lambda window: any(truth.lost_at for truth in window.truths),
    Verdict.CLEAN: lambda window: not (window.lost and window.is_known),
    Verdict.UNKNOWN: lambda window: any(account != "c" for account in window.accounts),
}


@given(windows())
def test_a_verdict_is_true_to_what_happened(window: Window) -> None:
    """Silent, nobody was heard; idle, nothing came; lossy, something was lost; clean, nothing was; unknown, a hole.

    Idle and clean speak of the messages that are known: one whose only observations name a moment that cannot be, or a
    node that is not declared, is none of them.
    """
    verdict = window.concluded().verdict
    assert verdict is not None
    assert MEANING[verdict](window)


@given(windows())
def test_unknown_is_never_without_a_reason(window: Window) -> None:
    """Nor is silence; and what is clean or idle gives none."""
    result = window.concluded()
    assert bool(result.reasons) >= (result.verdict in (Verdict.UNKNOWN, Verdict.SILENT))
    assert not result.reasons or result.verdict not in (Verdict.CLEAN, Verdict.IDLE)
