"""Tests of the pathway: how a path is read, what it says, and what the user reads when it says nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from hopwatch.monitor.pathway import Group, Pathway, PathwayError

ARROWS: dict[str, tuple[str | list[str], str, list[str]]] = {
    "one node": ("a", "a", []),
    "a chain": ("a -> b -> c", "abc", ["a>b", "b>c"]),
    "a chain in pieces": (["b -> c", "a -> b"], "abc", ["a>b", "b>c"]),
    "without spaces": ("a->b->c", "abc", ["a>b", "b>c"]),
    "to both": ("a -> b & c", "abc", ["a>b", "a>c"]),
    "to one of": ("a -> b | c", "abc", ["a>bc"]),
    "to one of, and on": ("a -> b | c -> d", "abcd", ["a>bc", "b>d", "c>d"]),
    "from both to one of": ("a & b -> c | d", "abcd", ["a>cd", "b>cd"]),
    "two one-of groups": (["a -> b | c", "a -> d | e"], "abcde", ["a>bc", "a>de"]),
    "one node in two groups": (["a -> b | c", "a -> c | d"], "abcd", ["a>bc", "a>cd"]),
    "a must beside a one-of": (["a -> b", "a -> c | d"], "abcd", ["a>b", "a>cd"]),
    "fan-in": (["a -> c", "b -> c"], "abc", ["a>c", "b>c"]),
    "a short cut": (["a -> b -> c", "a -> c"], "abc", ["a>b", "a>c", "b>c"]),
    "the same twice": (["a -> b | c", "a -> c | b", "a -> b | c"], "abc", ["a>bc"]),
    "two pieces apart": (["a -> b", "c -> d"], "abcd", ["a>b", "c>d"]),
    "nodes alone": (["b", "a"], "ba", []),
}


@pytest.mark.parametrize(("path", "nodes", "arrows"), ARROWS.values(), ids=ARROWS)
def test_a_path_is_read(path: str | list[str], nodes: str, arrows: list[str]) -> None:
    """Nodes come in topological order, and each arrow is a group of one or of several targets."""
    pathway = Pathway.parse(path)
    assert pathway.nodes == tuple(nodes)
    assert [_arrow(pathway, group) for group in pathway.groups] == arrows


def _arrow(pathway: Pathway, group: Group) -> str:
    return pathway.nodes[group.source] + ">" + "".join(pathway.nodes[target] for target in group.targets)


ORDERS = {
    "as mentioned": (["b -> c", "a -> c"], "bac"),
    "mentioned first, but behind": (["c", "a -> b -> c"], "abc"),
    "both sides of a diamond": ("s -> y & x -> t", "syxt"),
    "a branch, then its other side": (["s -> x -> y", "s -> z", "z -> y"], "sxzy"),
    "who is ready first is not who was mentioned first": (["d -> a", "c -> b"], "dacb"),
}


@pytest.mark.parametrize(("path", "order"), ORDERS.values(), ids=ORDERS)
def test_ties_go_by_first_mention(path: str | list[str], order: str) -> None:
    """Of the nodes that may come next it is the one that was mentioned first."""
    assert "".join(Pathway.parse(path).nodes) == order


def test_what_follows_from_the_arrows() -> None:
    """A pathway with a must, a one-of and a fan-in, with every fact that is taken from it."""
    pathway = Pathway.parse(["a -> b", "a -> c | d", "b -> e", "c -> e"])
    assert pathway.nodes == ("a", "b", "c", "d", "e")
    assert _ones(pathway.edges) == ["ab", "ac", "ad", "be", "ce"]
    assert _ones(pathway.must) == ["ab", "be", "ce"]
    assert _ones(pathway.downstream) == ["ab", "ac", "ad", "ae", "be", "ce"]
    assert pathway.branches == (Group(0, (2, 3)),)
    assert pathway.origins.tolist() == [True, False, False, False, False]
    assert pathway.terminals.tolist() == [False, False, False, True, True]
    assert pathway.sends_to_several


def _ones(matrix: np.ndarray) -> list[str]:
    return ["abcde"[row] + "abcde"[column] for row, column in np.argwhere(matrix)]


SEVERAL = {"a -> b": False, "a -> b | c": False, "a -> b & c": True, "a & b -> c": False, "a": False}


@pytest.mark.parametrize(("path", "several"), SEVERAL.items())
def test_one_of_is_one_place(path: str, several: bool) -> None:  # noqa: FBT001 - a fact of the table
    """Only a node with two arrows sends a message to more than one place."""
    assert Pathway.parse(path).sends_to_several is several


def test_each_node_stamps_both_sides_unless_it_says_so() -> None:
    """Sides stand in the order of the nodes."""
    assert Pathway.parse("a -> b -> c -> d", {"c": "out", "b": "in", "d": "both"}).stamps == (
        "both",
        "in",
        "out",
        "both",
    )


def test_255_nodes_are_a_pathway() -> None:
    """A node's number has to fit into a byte."""
    assert len(Pathway.parse(" -> ".join(f"n{number}" for number in range(255))).nodes) == 255


CHARACTERS = "a node is 1 to 128 of the characters A-Za-z0-9._-, got"

REFUSED: dict[str, tuple[str | Sequence[str], str, str]] = {
    "no lines": ([], "a path names at least one node, got an empty list", ""),
    "an empty line": ("", f"{CHARACTERS} '' in ''", ""),
    "nothing behind the arrow": ("a -> ", f"{CHARACTERS} '' in 'a ->'", ""),
    "nothing beside the bar": ("a -> b |", f"{CHARACTERS} '' in 'a -> b |'", "b |"),
    "a space in a name": ("a -> b c", f"{CHARACTERS} 'b c' in 'a -> b c'", "b c"),
    "half an arrow": ("a - > b", f"{CHARACTERS} 'a - > b' in 'a - > b'", "a - > b"),
    "a long name": ("n" * 129, f"{CHARACTERS} '{'n' * 40}' in '{'n' * 80}'", "n" * 129),
    "a name beyond ASCII": ("nöde -> b", f"{CHARACTERS} 'nöde' in 'nöde -> b'", "nöde"),
    "a line feed": ("a\nb", f"{CHARACTERS} 'a\\nb' in 'a\\nb'", "a\nb"),
    "| and &": ("a -> b | c & d", "a hop joins its nodes by | or by &, got both in 'b | c & d'", "b | c & d"),
    "twice in a hop": ("a -> b | b", "a node stands once in a hop, got 'b' twice in 'b | b'", "b | b"),
    "to itself": ("a -> a", "a path leads on and never back, got the cycle a -> a", "a -> a"),
    "a cycle": ("a -> b -> c -> b", "a path leads on and never back, got the cycle b -> c -> b", "b -> c"),
    "a cycle of lines": (
        ["in -> a -> b -> out", "b -> c -> a"],
        "a path leads on and never back, got the cycle a -> b -> c -> a",
        "a -> b",
    ),
    "must and one of": (
        ["a -> b", "a -> b | c"],
        "a -> b is expected of every message in 'a -> b' and of some in 'a -> b | c': keep one",
        "a -> b | c",
    ),
    "one of and both": (
        ["a -> c | b", "a -> b & d"],
        "a -> b is expected of every message in 'a -> b & d' and of some in 'a -> c | b': keep one",
        "a -> c | b",
    ),
    "256 nodes": ([f"n{n}" for n in range(256)], "a path has at most 255 nodes, got 256: split the stream in two", ""),
}


@pytest.mark.parametrize(("path", "told", "hop"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_path_is_refused(path: str | Sequence[str], told: str, hop: str) -> None:
    """The error says what was got, and names the piece that is at fault."""
    with pytest.raises(PathwayError) as caught:
        Pathway.parse(path)
    assert (str(caught.value), caught.value.hop) == (told, hop)


COUNTING = {
    "between two": ("a -> n -> b", ("n",), [("n", "a", "b", True)], ["ab"]),
    "first": ("n -> b", ("n",), [("n", None, "b", True)], []),
    "last": ("a -> n", ("n",), [("n", "a", None, False)], []),
    "two in a row": ("a -> n -> m -> b", ("n", "m"), [("n", "a", "b", True), ("m", "a", "b", True)], ["ab"]),
    "two in a row, first": ("n -> m -> b", ("n", "m"), [("n", None, "b", True), ("m", None, "b", True)], []),
    "beside another way": (["a -> n -> b", "a -> b"], ("n",), [("n", "a", "b", False)], ["ab"]),
    "one of several sides": ("a -> n & b -> c", ("n",), [("n", "a", "c", False)], ["ab", "ac", "bc"]),
}


@pytest.mark.parametrize(("path", "counts", "found", "arrows"), COUNTING.values(), ids=COUNTING)
def test_arrows_go_past_nodes_that_count(
    path: str | list[str],
    counts: tuple[str, ...],
    found: list[tuple[str, str | None, str | None, bool]],
    arrows: list[str],
) -> None:
    """A node without ids is no node of the graph; it knows the nearest that have some."""
    pathway = Pathway.parse(path, dict.fromkeys(counts, "count"))
    names = [*pathway.nodes]
    told = [
        (one.name, *(None if place is None else names[place] for place in (one.before, one.behind)), one.is_alone)
        for one in pathway.counting
    ]
    assert (told, pathway.declared) == (found, (*names, *counts))
    assert [names[row] + names[column] for row, column in np.argwhere(pathway.edges)] == arrows


RULE = "counts, and such a node has one arrow to it and one from it at most, which everything takes, got"
CANNOT_COUNT: dict[str, tuple[str | list[str], str, str]] = {
    "one of several": ("a -> n | b", "n", f"'n' {RULE} a -> n | b"),
    "before a branch": ("n -> a | b", "n", f"'n' {RULE} n -> a | b"),
    "where ways meet": ("a & b -> n", "n", f"'n' {RULE} a -> n and b -> n"),
    "where ways part": ("n -> a & b", "n", f"'n' {RULE} n -> a & b"),
    "all of them": ("a", "a", "some node of a path stamps ids, got a, which all count"),
    "two kinds": (["a -> n -> b", "a -> b | c"], "n", "a -> b is expected of every message in 'a -> n' and of some in"),
}


@pytest.mark.parametrize(("path", "node", "told"), CANNOT_COUNT.values(), ids=CANNOT_COUNT)
def test_nodes_that_cannot_count_are_refused(path: str | list[str], node: str, told: str) -> None:
    """The error names the node and what leads to it or from it."""
    with pytest.raises(PathwayError, match=re.escape(told)):
        Pathway.parse(path, {node: "count"})


STAMPS = {
    "of an unknown node": ({"z": "in"}, "stamps names the node 'z', which is not in the path: a, b", "z"),
    "of an unknown side": ({"b": "inn"}, "stamps of 'b' is one of both, in, out, count, got 'inn'", "b"),
}


@pytest.mark.parametrize(("stamps", "told", "hop"), STAMPS.values(), ids=STAMPS)
def test_stamps_that_cannot_be_are_refused(stamps: dict[str, str], told: str, hop: str) -> None:
    """The error lists what is allowed."""
    with pytest.raises(PathwayError) as caught:
        Pathway.parse("a -> b", stamps)
    assert (str(caught.value), caught.value.hop) == (told, hop)
