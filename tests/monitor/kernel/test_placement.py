"""Tests of the place of an undeclared node: in simulated streams the path is edited to the one that messages took."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopwatch.monitor.kernel.placement import (
    NeighbourCounts,
    NodeSightings,
    PathEdit,
    PlacementError,
    find_placement,
    plan_edit,
)
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.settings.path_edit import edit_chains
from tests.support.path_arrows import read_arrows
from tests.support.path_travel import build_sightings, travel

WORLDS: Final[dict[str, tuple[list[str], list[str]]]] = {
    "in the middle": (["a -> b -> c"], ["a -> b -> x", "x -> c"]),
    "on the first arrow": (["a -> b -> c"], ["a -> x -> b -> c"]),
    "as a new origin": (["a -> b -> c"], ["a -> b -> c", "x -> b"]),
    "as the first node": (["a -> b -> c"], ["x -> a -> b -> c"]),
    "as the last node": (["a -> b -> c"], ["a -> b -> c -> x"]),
    "beside the last node": (["a -> b -> c"], ["a -> b -> c & x"]),
    "beside a node in the middle": (["a -> b -> c"], ["a -> b & x", "b -> c"]),
    "before a branch": (["a -> b | c", "b -> d", "c -> d"], ["a -> x -> b | c", "b -> d", "c -> d"]),
    "behind a branch": (["a -> b | c", "b -> d", "c -> d"], ["a -> b | c", "b -> x", "c -> x", "x -> d"]),
    "on one way of a branch": (["a -> b | c", "b -> d", "c -> d"], ["a -> b | x", "x -> c", "b -> d", "c -> d"]),
    "as a third way": (["a -> b | c", "b -> d", "c -> d"], ["a -> b | c | x", "b -> d", "c -> d", "x -> d"]),
    "as a third end": (["a -> b | c"], ["a -> b | c | x"]),
    "on one side of two": (["a -> b & c"], ["a -> b", "a -> x -> c"]),
    "before both sides": (["a -> b & c"], ["a -> x", "x -> b & c"]),
}
"""Declared path and the path that messages take, with the node x."""


def edited(path: list[str], edit: PathEdit) -> list[str]:
    """Return a path as an edit makes it."""
    return [chain for chains in edit_chains(path, edit) for chain in chains]


@pytest.mark.parametrize(("declared", "taken"), WORLDS.values(), ids=WORLDS)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from([0.0, 0.01, 0.2]))
def test_the_edited_path_is_the_one_that_messages_take(
    declared: list[str], taken: list[str], seed: int, loss: float
) -> None:
    """The node may stand anywhere, and messages may be lost on the way; an end behind a loss is no proof."""
    sightings = travel(taken, 400, seed, loss=loss)
    placement = find_placement("x", sightings)
    side_end = taken[0].endswith("& x") or "& x" in taken[0]
    if loss > 0 and side_end:
        # Some of what leaves the source neither comes to x nor stays away from it.
        return
    edit = plan_edit(placement, sightings, Pathway.parse(declared))
    assert read_arrows(edited(declared, edit)) == read_arrows(taken)


@given(seed=st.integers(0, 2**32 - 1), share=st.sampled_from([0.1, 0.5, 0.9]))
@settings(max_examples=20, deadline=None)
def test_a_node_that_sees_a_part_of_an_arrow_is_another_way(seed: int, share: float) -> None:
    """As in a rolling upgrade: some messages go by it, others straight on; declared so, none of them is lost."""
    straight, around = (travel(path, 300, seed + n) for n, path in enumerate((["a -> b -> c"], ["a -> x -> b -> c"])))
    chance = np.random.default_rng(seed)
    kept = {name: build_sightings({}) for name in "abcx"}
    for part, of_part in ((straight, 1 - share), (around, share)):
        chosen = part["a"].ids[chance.random(len(part["a"].ids)) < of_part]
        for name, seen in part.items():
            more = seen.select(chosen)
            joined = dict(zip(kept[name].ids.tolist(), kept[name].moments_us.tolist(), strict=True))
            joined |= dict(zip(more.ids.tolist(), more.moments_us.tolist(), strict=True))
            kept[name] = build_sightings(joined)
    placement = find_placement("x", kept)
    edit = plan_edit(placement, kept, Pathway.parse("a -> b -> c"))
    assert read_arrows(edited(["a -> b -> c"], edit)) == read_arrows(["a -> b | x", "x -> b", "b -> c"])
    assert edit.unseen == 0
    assert placement.since_us == kept["x"].moments_us.min()
    assert placement.before == (NeighbourCounts("a", len(kept["x"].ids)),)
    assert placement.behind == (NeighbourCounts("b", len(kept["x"].ids)),)


def test_messages_that_were_not_seen_at_the_node_are_counted() -> None:
    """Up to one of a hundred may be missing at a node that takes all: once it is declared, these would be lost."""
    sightings = travel(["a -> x -> b"], 200, 1)
    sightings["x"] = NodeSightings(sightings["x"].ids[1:], sightings["x"].moments_us[1:])
    edit = plan_edit(find_placement("x", sightings), sightings, Pathway.parse("a -> b"))
    assert edit == PathEdit((("a", ("b",)),), (("a", ("x",)), ("x", ("b",))), 1, 200)


def test_a_node_with_ids_of_its_own_has_no_place() -> None:
    """Nothing can be said of it."""
    sightings = travel(["a -> b"], 100, 1) | {"x": travel(["x"], 100, 2)["x"]}
    placement = find_placement("x", sightings)
    assert (placement.before, placement.behind) == ((), ())
    with pytest.raises(PlacementError) as refused:
        plan_edit(placement, sightings, Pathway.parse("a -> b"))
    assert str(refused.value) == ("x shares no message with a declared node: its ids are others, or nothing comes on")


def test_a_copy_of_some_messages_is_on_no_path() -> None:
    """A path says of each arrow that all take it, or that each message takes one of several."""
    sightings = travel(["a -> b & x"], 200, 1)
    sightings["x"] = sightings["x"].select(sightings["x"].ids[:50])
    with pytest.raises(PlacementError) as refused:
        plan_edit(find_placement("x", sightings), sightings, Pathway.parse("a -> b"))
    assert str(refused.value) == (
        "50 of 200 messages that a saw came to x, and some of them went on elsewhere, too: no path says that"
    )
