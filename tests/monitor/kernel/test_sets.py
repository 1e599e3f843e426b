"""Tests of the sets: one message at a time, with every set that it is in."""

from __future__ import annotations

import numpy as np
import pytest

from hopwatch.monitor.kernel.sets import Sets, classify, shown_lost
from hopwatch.monitor.pathway import Pathway

CODES = {"": 0, "i": 1, "o": 2, "io": 3, "f": 4, "if": 5, "r": 8, "ir": 9, "ifr": 13, "iof": 7}
NODE_SETS = (
    "expected", "filtered", "rejected", "lost_in_transit", "lost_inside", "lost_after", "unobserved", "orphan",
)  # fmt: skip
END_SETS = ("delivered", "filtered_end_to_end", "rejected_end_to_end", "lost", "partial")


def _sets(pathway: Pathway, *messages: str) -> Sets:
    """Classify messages, each given by what was stamped at the nodes, one word a node, - for nothing."""
    masks = [
        sum(CODES[said.strip("-")] << 4 * node for node, said in enumerate(message.split())) for message in messages
    ]
    return classify(pathway, np.array(masks, np.uint64)[:, None])


def _told(pathway: Pathway, sets: Sets) -> str:
    """Return the sets of the one message: NODE:set for nodes, the set alone end to end."""
    at_nodes = [
        f"{node}:{name}"
        for place, node in enumerate(pathway.nodes)
        for name in NODE_SETS
        if getattr(sets, name)[0, place]
    ]
    return " ".join(at_nodes + [name for name in END_SETS if getattr(sets, name)[0]])


CHAIN = {
    "passed everywhere": ("io io io", "a:expected b:expected c:expected delivered"),
    "lost inside a": ("i - -", "a:expected a:lost_inside lost"),
    "lost in transit to b": ("io - -", "a:expected b:expected b:lost_in_transit lost"),
    "lost in transit to c": ("io io -", "a:expected b:expected c:expected c:lost_in_transit lost"),
    "lost inside c": ("io io i", "a:expected b:expected c:expected c:lost_inside lost"),
    "filtered at b": ("io if -", "a:expected b:expected b:filtered filtered_end_to_end"),
    "filtered without a stamp": ("io f -", "a:expected b:expected b:filtered filtered_end_to_end"),
    "rejected at the end": ("io io ir", "a:expected b:expected c:expected c:rejected rejected_end_to_end"),
    "both is rejected": ("io ifr -", "a:expected b:expected b:rejected rejected_end_to_end"),
    "filtered, and left all the same": (
        "io iof -",
        "a:expected b:expected c:expected c:lost_in_transit lost",
    ),
    "rejected, sent again, then filtered": ("ir if -", "a:expected b:filtered filtered_end_to_end"),
    "filtered, sent again, then rejected": ("if ir -", "a:expected b:rejected rejected_end_to_end"),
    "rejected, and seen below": ("io ir io", "a:expected b:expected delivered"),
    "b's probe missed it": ("io - io", "a:expected b:expected b:unobserved delivered"),
    "b's probe saw it come only": ("io i io", "a:expected b:expected delivered"),
    "a's probe missed it": ("- io io", "b:orphan c:expected delivered"),
    "only the last saw it": ("- - io", "c:orphan delivered"),
    "nobody saw it come": ("o o o", "a:expected b:expected c:expected delivered"),
}


@pytest.mark.parametrize(("message", "told"), CHAIN.values(), ids=CHAIN)
def test_one_message_on_a_chain(message: str, told: str) -> None:
    """Every set that it is in, at each node and end to end, and no other."""
    pathway = Pathway.parse("a -> b -> c")
    assert _told(pathway, _sets(pathway, message)) == told


# What was stamped stands in the order of the letters.
FORMS: dict[str, tuple[str | list[str], str, str]] = {
    "to one of, taken": ("a -> b | c -> d", "io io - io", "a:expected b:expected d:expected delivered"),
    "to one of, lost": ("a -> b | c -> d", "io - - -", "a:expected a:lost_after lost"),
    "to one of, its probe missed it": ("a -> b | c -> d", "io - - io", "a:expected delivered"),
    "to both, one lost": (
        "a -> b & c",
        "io io -",
        "a:expected b:expected c:expected c:lost_in_transit lost partial",
    ),
    "to both, one filtered and one lost": (
        "a -> b & c",
        "io if -",
        "a:expected b:expected b:filtered c:expected c:lost_in_transit lost",
    ),
    "to both, one filtered": ("a -> b & c", "io if io", "a:expected b:expected b:filtered c:expected delivered"),
    "to both, one rejected and one filtered": (
        "a -> b & c",
        "io ir if",
        "a:expected b:expected b:rejected c:expected c:filtered rejected_end_to_end",
    ),
    "to both, and together again": (
        "a -> b & c -> d",
        "io io - io",
        "a:expected b:expected c:expected c:unobserved d:expected delivered",
    ),
    "two groups, one of them lost": (
        ["a -> b | c", "a -> d | e"],
        "io io - - -",
        "a:expected a:lost_after b:expected lost partial",
    ),
    "fan-in from either": (["a -> c", "b -> c"], "- io io", "b:expected c:expected delivered"),
    "a must beside a one-of": (
        ["a -> b", "a -> c | d"],
        "io - - io",
        "a:expected b:expected b:lost_in_transit d:expected lost partial",
    ),
}


@pytest.mark.parametrize(("path", "message", "told"), FORMS.values(), ids=FORMS)
def test_one_message_where_ways_part_and_meet(path: str | list[str], message: str, told: str) -> None:
    """A one-of group expects nothing at its sides, and loses what none of them saw; a must expects everything."""
    pathway = Pathway.parse(path)
    assert sorted(pathway.nodes) == list(pathway.nodes)
    assert _told(pathway, _sets(pathway, message)) == told


def test_the_worked_example() -> None:
    """Ten messages at four nodes: 10, 9, 7 and 5 are seen, 0, 1, 2 and 2 lost, one half in all."""
    ways = ["io io io io"] * 5 + ["io io io -"] * 2 + ["io io - -"] * 2 + ["io - - -"]
    sets = _sets(Pathway.parse("node1 -> node2 -> node3 -> node4"), *ways)
    assert sets.seen.sum(axis=0).tolist() == [10, 9, 7, 5]
    assert sets.loss.sum(axis=0).tolist() == [0, 1, 2, 2]
    assert (sets.delivered.sum(), sets.lost.sum()) == (5, 5)


SHOWN = {
    "all accounts told": ("abcd", {"a": 1, "b": 1, "c": 0, "d": 1}),
    "a's are not": ("bcd", {"a": 0, "b": 1, "c": 0, "d": 1}),
    "b's are not: nothing at b, nothing behind the branch": ("acd", {"a": 0, "b": 0, "c": 0, "d": 1}),
    "c's are not: nothing behind the branch": ("abd", {"a": 0, "b": 1, "c": 0, "d": 1}),
    "d's are not": ("abc", {"a": 1, "b": 1, "c": 0, "d": 0}),
    "nobody's": ("", {"a": 0, "b": 0, "c": 0, "d": 0}),
}


@pytest.mark.parametrize(("told", "shown"), SHOWN.values(), ids=SHOWN)
def test_only_told_accounts_show_a_loss(told: str, shown: dict[str, int]) -> None:
    """Three messages are lost: after a, inside b, in transit to d; where that shows depends on the accounts."""
    pathway = Pathway.parse("a -> b | c -> d")
    sets = _sets(pathway, "io - - -", "io i - -", "io io - -")
    by_node = shown_lost(pathway, sets, np.array([node in told for node in pathway.nodes]))
    assert dict(zip(pathway.nodes, by_node.sum(axis=0).tolist(), strict=True)) == shown
