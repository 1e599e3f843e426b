"""Laws of the pathway: what follows from the arrows, by definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hopwatch.monitor.pathway import Pathway
from tests.laws.strategies import DrawnPathway, graphs, pathways


def _pairs(drawn: DrawnPathway, matrix: NDArray[np.bool_]) -> set[tuple[str, str]]:
    nodes = drawn.product.nodes
    return {(nodes[row], nodes[column]) for row, column in np.argwhere(matrix)}


@given(pathways())
def test_matrices_and_ends_are_those_of_the_model(drawn: DrawnPathway) -> None:
    """Edges, what lies downstream, must edges, origins, terminals and the order of nodes are the reference model's."""
    product, model = drawn
    nodes = model.nodes
    assert product.nodes == nodes
    assert _pairs(drawn, product.edges) == {(node, to) for node in nodes for to in model.next_nodes(node)}
    assert _pairs(drawn, product.downstream) == {(node, to) for node in nodes for to in model.downstream(node)}
    assert _pairs(drawn, product.must) == {(node, to) for node in nodes for to in model.must[node]}
    assert tuple(np.array(nodes)[product.origins]) == model.origins
    assert tuple(np.array(nodes)[product.terminals]) == model.terminals
    assert tuple(np.array(nodes)[product.splits]) == model.splits
    assert product.sends_to_several == model.sends_to_several_places


@given(pathways())
def test_branches_are_the_one_of_groups(drawn: DrawnPathway) -> None:
    """Each group keeps its source and all of its targets."""
    nodes = drawn.product.nodes
    branches = {(nodes[b.source], frozenset(nodes[t] for t in b.targets)) for b in drawn.product.branches}
    assert branches == {(node, group) for node in nodes for group in drawn.model.one_of[node]}


@given(graphs())
def test_every_arrow_leads_on(path: list[str]) -> None:
    """In the order of nodes each stands behind all that lead to it."""
    assert not np.tril(Pathway.parse(path).edges).any()


@given(graphs(), st.data())
def test_saying_it_again_changes_nothing(path: list[str], data: st.DataObject) -> None:
    """Lines may be repeated, and the nodes of a hop stand in any order."""
    again = data.draw(st.lists(st.sampled_from(path)))
    turned = [_turned(line) for line in data.draw(st.lists(st.sampled_from(path)))]
    assert Pathway.parse([*path, *again, *turned]) == Pathway.parse(path)


def _turned(line: str) -> str:
    source, arrow, targets = line.partition(" -> ")
    joint = " & " if "&" in targets else " | "
    return source + arrow + joint.join(reversed(targets.split(joint)))
