"""Tests of the layout of the service map."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.dashboards.views.map_layout import MAX_CHAIN_ROWS, MapPlaces, MapShape, Pair, place_services

WIDE = MapShape(columns=9, line_services=24, is_down=False)
NARROW = MapShape(columns=3, line_services=3, is_down=True)
ENDLESS = MapShape(columns=100, line_services=100, is_down=False)
ROUNDING = 1e-6

edge_lists = st.integers(1, 25).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=50),
    )
)


def chain(count: int) -> list[Pair]:
    """Return the edges of a chain."""
    return [(place, place + 1) for place in range(count - 1)]


@pytest.mark.parametrize("shape", [WIDE, NARROW])
@given(edge_lists)
def test_services_stand_apart_within_the_map(shape: MapShape, graph: tuple[int, list[Pair]]) -> None:
    """In any graph, with circles and services that lead to themselves too: none lies on another or beyond the edge."""
    count, edges = graph
    laid = place_services(count, edges, shape, 2)
    assert len(laid.places) == count
    assert 2 <= laid.columns <= shape.columns
    for column, row in laid.places:
        assert 0 <= column <= laid.columns - 1
        assert 0 <= row <= laid.rows - 1 + ROUNDING
    for (left, top), (right, bottom) in combinations(laid.places, 2):
        assert abs(left - right) >= 1 - ROUNDING or abs(top - bottom) >= 1 - ROUNDING


@given(edge_lists)
def test_messages_flow_to_the_right(graph: tuple[int, list[Pair]]) -> None:
    """A service without circles stands to the right of all that lead to it."""
    count, found = graph
    edges = [(min(edge), max(edge)) for edge in found if edge[0] != edge[1]]
    laid = place_services(count, edges, ENDLESS)
    assert all(laid.places[source][0] < laid.places[target][0] for source, target in edges)


def test_a_chain_is_one_row() -> None:
    """In the middle of a map that has more columns than it needs."""
    assert place_services(4, chain(4), WIDE, 6) == MapPlaces(((1, 0), (2, 0), (3, 0), (4, 0)), 6, 1)


def test_a_chain_longer_than_the_map_turns_round() -> None:
    """The rest comes back below: neighbours stay neighbours."""
    laid = place_services(12, chain(12), WIDE)
    assert list(laid.places[8:]) == [(8, 0), (8, 1), (7, 1), (6, 1)]
    assert laid.rows == 2


def test_chains_go_down_side_by_side_on_a_narrow_map() -> None:
    """One that is too long for that goes in turns."""
    edges = [(0, 1), (2, 3), (4, 5)]
    laid = place_services(6, edges, NARROW)
    assert [column for column, _ in laid.places] == [0, 0, 1, 1, 2, 2]
    count = MAX_CHAIN_ROWS + 1
    assert place_services(count, chain(count), NARROW).rows == 3


def test_a_layer_that_is_too_long_goes_on_in_the_next_line() -> None:
    """Lines of a layer are about as long as each other."""
    edges = [(0, place) for place in range(1, 5)]
    laid = place_services(5, edges, NARROW)
    below = sorted(row for _, row in laid.places[1:])
    assert len(set(below)) == 2
    assert below.count(below[0]) == 2


def test_services_that_nothing_connects_stand_apart() -> None:
    """The group that needs most rows comes first."""
    laid = place_services(5, [(0, 1), (2, 3), (2, 4)], WIDE)
    assert [column for column, _ in laid.places] == [2, 3, 0, 1, 1]


def test_edges_between_two_layers_do_not_cross_without_need() -> None:
    """Services of a layer are in the order of those that lead to them."""
    rows = [row for _, row in place_services(6, [(0, 5), (1, 4), (2, 3), (0, 4), (1, 3)], WIDE).places]
    assert rows[0] < rows[1] < rows[2]
    assert rows[5] < rows[4] < rows[3]


def test_a_map_of_nothing_has_no_rows() -> None:
    """Columns are there nevertheless."""
    assert place_services(0, [], WIDE, 6) == MapPlaces((), 6, 0)
