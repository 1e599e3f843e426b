"""Tests of edges that no path declares: in simulated streams those are found that messages took, and no other."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.kernel.shortcuts import MIN_MESSAGES, Shortcut, find_shortcuts
from hopwatch.monitor.pathway import Pathway
from tests.support.path_travel import build_sightings, travel

DIAMOND: Final = ["a -> b & c", "b -> d", "c -> d"]
WORLDS: Final[dict[str, tuple[list[str], list[str], list[str]]]] = {
    "past one node": (["a -> b -> c"], ["a -> b | c", "b -> c"], ["a -> b | c"]),
    "past two nodes": (["a -> b -> c -> d"], ["a -> b | d", "b -> c", "c -> d"], ["a -> b | d"]),
    "past one and past two": (
        ["a -> b -> c -> d"],
        ["a -> b | c | d", "b -> c", "c -> d"],
        ["a -> b | c", "a -> b | d"],
    ),
    "past both ways of a branch": (
        ["a -> b | c", "b -> d", "c -> d"],
        ["a -> b | c | d", "b -> d", "c -> d"],
        ["a -> b | c | d"],
    ),
    "on one way of two": (["a -> b & c", "b -> d -> e"], ["a -> b & c", "b -> d | e", "d -> e"], ["b -> d | e"]),
    "where another copy may have come": (DIAMOND, ["a -> b | d", "a -> c", "b -> d", "c -> d"], []),
    "nowhere": (DIAMOND, DIAMOND, []),
}
"""Declared path, the path that messages take, and the arrows that would declare what is found."""


@pytest.mark.parametrize(("declared", "taken", "arrows"), WORLDS.values(), ids=WORLDS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.0, 0.01, 0.2]))
def test_edges_are_found_that_messages_took(
    declared: list[str], taken: list[str], arrows: list[str], seed: int, loss: float
) -> None:
    """A message that is lost on the way goes on nowhere."""
    found = find_shortcuts(travel(taken, 400, seed, loss=loss), Pathway.parse(declared))
    assert [f"{one.edited_arrow[0]} -> {' | '.join(one.edited_arrow[1])}" for one in found] == arrows


def test_messages_are_counted() -> None:
    """Of all that its source saw, the ones that went past the node."""
    every = {key: key for key in range(1_000)}
    past = {key: key + 5 for key in every if key % 4 == 0}
    near = {key: key + 1 for key in every if key not in past}
    sightings = {
        "a": build_sightings(every),
        "b": build_sightings(near),
        "c": build_sightings({key: key + 5 for key in every}),
    }
    found = find_shortcuts(sightings, Pathway.parse("a -> b -> c"))
    assert found == [Shortcut(("a", ("b",)), "c", 250, 1_000)]
    assert find_shortcuts({"a": sightings["a"]}, Pathway.parse("a -> b -> c")) == []


@pytest.mark.parametrize(
    ("past", "sent", "is_found"), [(9, 9, False), (10, 10, True), (19, 1_000, False), (20, 1_000, True)]
)
def test_few_messages_are_no_edge(past: int, sent: int, is_found: bool) -> None:  # noqa: FBT001 - a column
    """A probe that was killed misses some, too."""
    assert MIN_MESSAGES == 10
    every = {key: key for key in range(sent)}
    sightings = {
        "a": build_sightings(every),
        "b": build_sightings({key: key + 1 for key in range(past, sent)}),
        "c": build_sightings({k: k + 2 for k in every}),
    }
    assert bool(find_shortcuts(sightings, Pathway.parse("a -> b -> c"))) is is_found


def test_an_edge_leads_on() -> None:
    """Messages that were seen behind before they were seen here came another way."""
    every = {key: key + 5 for key in range(100)}
    sightings = {"a": build_sightings(every), "c": build_sightings({key: key for key in every})}
    assert find_shortcuts(sightings, Pathway.parse("a -> b -> c")) == []
