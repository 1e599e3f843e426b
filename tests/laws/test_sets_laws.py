"""Laws of the sets: each is what SEMANTICS.md defines, and nothing is lost twice or found nowhere."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.kernel.masks import mask_words
from hopwatch.monitor.kernel.sets import Bools, Sets, classify, shown_lost
from tests.laws.strategies import (
    ONE_PLACE,
    DrawnPathway,
    SeenMessage,
    as_model,
    mask_of,
    message_id,
    pathways,
    seen_messages,
)
from tests.model.sets import Ids, WindowSets

Case = tuple[DrawnPathway, list[SeenMessage]]


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a pathway and what was seen on it."""
    drawn = draw(pathways())
    return drawn, draw(seen_messages(drawn.product))


def _classified(case: Case) -> tuple[list[bytes], Sets]:
    """Return the known ids and the sets of a window, by the kernel; row by row they belong together."""
    drawn, observations = case
    masks = mask_of(drawn.product, observations)
    words = range(mask_words(len(drawn.product.nodes)))
    rows = [[mask >> 64 * word & (2**64 - 1) for word in words] for mask in masks.values()]
    return [message_id(m) for m in masks], classify(drawn.product, np.array(rows, np.uint64).reshape(-1, len(words)))


def _members(ids: list[bytes], column: Bools) -> Ids:
    return frozenset(ids[place] for place in np.flatnonzero(column))


def _at_node(model: WindowSets, node: str) -> dict[str, Ids]:
    return {
        "arrived": model.came(node),
        "departed": model.left(node),
        "seen": model.seen(node),
        "expected": model.expected(node),
        "filtered": model.stopped(node) - model.rejected(node),
        "rejected": model.rejected(node),
        "lost_in_transit": model.lost_in_transit(node),
        "lost_inside": model.lost_inside(node),
        "lost_after": model.lost_after(node),
        "loss": model.lost_at(node),
        "unobserved": model.unobserved(node),
        "orphan": model.orphans(node),
    }


@given(windows())
def test_every_set_of_a_node_is_as_defined(case: Case) -> None:
    """On any pathway, and whatever was stamped, each set has the members that Python's sets give it."""
    ids, sets = _classified(case)
    model = as_model(*case)
    for place, node in enumerate(case[0].product.nodes):
        expected = _at_node(model, node)
        assert {name: _members(ids, getattr(sets, name)[:, place]) for name in expected} == expected


@given(windows())
def test_every_set_end_to_end_is_as_defined(case: Case) -> None:
    """The sets of messages end to end are those of the reference model."""
    ids, sets = _classified(case)
    model = as_model(*case)
    assert frozenset(ids) == model.known()
    assert _members(ids, sets.delivered) == model.delivered()
    assert _members(ids, sets.filtered_end_to_end) == model.stopped_anywhere() - model.rejected_anywhere()
    assert _members(ids, sets.rejected_end_to_end) == model.rejected_anywhere()
    assert _members(ids, sets.lost) == model.lost()
    assert _members(ids, sets.partial) == model.partial()


@given(windows(), st.data())
def test_a_loss_is_shown_by_told_accounts(case: Case, data: st.DataObject) -> None:
    """In transit and inside by those of the node's own, behind a branch by those of all its next nodes too."""
    ids, sets = _classified(case)
    (pathway, model_pathway), model = case[0], as_model(*case)
    are_told = data.draw(st.lists(st.booleans(), min_size=len(pathway.nodes), max_size=len(pathway.nodes)))
    told = dict(zip(pathway.nodes, are_told, strict=True))
    by_product = shown_lost(pathway, sets, np.array(are_told))
    for place, node in enumerate(pathway.nodes):
        groups = [group for group in model_pathway.one_of[node] if all(told[to] for to in group)]
        behind = frozenset().union(*(model.lost_after_group(node, group) for group in groups))
        shown = model.lost_in_transit(node) | model.lost_inside(node) | behind
        assert _members(ids, by_product[:, place]) == (shown if told[node] else frozenset())


@given(windows())
def test_every_message_ends_in_one_way(case: Case) -> None:
    """Conservation: known = delivered + filtered + rejected + lost, in every window."""
    _, sets = _classified(case)
    ends = np.stack((sets.delivered, sets.filtered_end_to_end, sets.rejected_end_to_end, sets.lost))
    assert (ends.sum(axis=0) == 1).all()


@given(windows())
def test_nodes_and_the_end_tell_one_story(case: Case) -> None:
    """Lost is what some node lost: all that never left a terminal nor was stopped, and what one way lost of several."""
    _, sets = _classified(case)
    stopped, left = (sets.filtered | sets.rejected).any(axis=1), sets.departed[:, case[0].product.terminals].any(axis=1)
    assert (sets.lost == sets.loss.any(axis=1)).all()
    assert (sets.lost >= ~left & ~stopped).all()
    assert (sets.partial == (sets.lost & left)).all()
    assert (sets.rejected_end_to_end <= sets.rejected.any(axis=1)).all()
    assert (sets.filtered_end_to_end <= sets.filtered.any(axis=1)).all()


@given(windows())
def test_the_parts_of_a_loss_are_apart(case: Case) -> None:
    """A message is lost on the way to a node, inside it or after it, and never at one node in two ways."""
    _, sets = _classified(case)
    parts = np.stack((sets.lost_in_transit, sets.lost_inside, sets.lost_after))
    assert (parts.sum(axis=0) == sets.loss).all()


@st.composite
def one_way_windows(draw: st.DrawFn) -> Case:
    """Draw a chain or a tree of one-of branches, and messages of which none takes two."""
    drawn = draw(pathways(st.sampled_from(ONE_PLACE)))
    observations = draw(seen_messages(drawn.product))
    leaves = [draw(st.sampled_from(np.flatnonzero(drawn.product.terminals).tolist())) for _ in range(6)]
    above = drawn.product.downstream | np.eye(len(drawn.product.nodes), dtype=bool)
    return drawn, [one for one in observations if above[one.node, leaves[one.message]]]


@given(one_way_windows())
def test_where_no_message_takes_two_ways_losses_add_up(case: Case) -> None:
    """Lost end to end is the sum of the losses of the nodes, and no two nodes lost the same message."""
    _, sets = _classified(case)
    assert (sets.loss.sum(axis=1) == sets.lost).all()
    assert not sets.partial.any()
