"""The model holds to the page: the worked example, conservation, sets, lag and accounts."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.lag import quantile, quantiles, rank_interval
from tests.model.model import report
from tests.model.pathway import parse
from tests.model.random_choices import Dials, dials
from tests.model.record import FILTERED, PASSED, REJECTED, Observation
from tests.model.scenario import generate
from tests.model.sets import WindowSets
from tests.model.spool_writer import Row, SpoolWriter, came, passed
from tests.support.examples import examples

CHAIN = {"path": "a -> b -> c -> d"}


def test_the_worked_example(tmp_path: Path) -> None:
    """Ten messages, 10/9/7/5 seen: the nodes lose 0/1/2/2, end to end 5 of 10."""
    hand = SpoolWriter(tmp_path, CHAIN)
    for node, ids in (
        ("a", range(1, 11)),
        ("b", (1, 2, 4, 5, 6, 7, 8, 9, 10)),
        ("c", (1, 2, 4, 5, 6, 7, 8)),
        ("d", (1, 2, 4, 5, 6)),
    ):
        hand.say(node, 0, 30, passed(*ids))
        hand.say(node, 1, 300, minute=5)
    window = hand.window()
    nodes = list(window["nodes"].values())
    assert [node["seen"] for node in nodes] == [10, 9, 7, 5]
    assert [(node["loss"], node["loss_lower"], node["loss_upper"]) for node in nodes] == [
        (n, n, n) for n in (0, 1, 2, 2)
    ]
    assert [node["loss_ratio"] for node in nodes] == [0, 1 / 10, 2 / 9, 2 / 7]
    assert [int(one, 16) for one in nodes[2]["lost_ids"]] == [9, 10]
    assert (window["known"], window["delivered"], window["lost"], window["loss_ratio"]) == (10, 5, 5, 0.5)
    assert (window["lost_lower"], window["lost_upper"], window["verdict"]) == (5, 5, "LOSSY")


observations = st.builds(
    Observation,
    message_id=st.integers(0, 9).map(lambda number: number.to_bytes(16, "big")),
    lag_in_us=st.none() | st.integers(-3, 9),
    lag_out_us=st.none() | st.integers(-3, 9),
    outcome=st.sampled_from((PASSED, FILTERED, REJECTED)),
).filter(lambda one: not one.passed or (one.lag_in_us, one.lag_out_us) != (None, None))

TREE = ["a -> b | c", "b -> d | e", "d -> f | g", "e -> h | i"]
WAYS = ("ac", "abdf", "abdg", "abeh", "abei")


def _loss_is_shared_out(sets: WindowSets) -> None:
    shares = [sets.lost_at(node) for node in sets.pathway.nodes]
    assert sum(len(share) for share in shares) == len(sets.lost())
    assert frozenset().union(*shares) == sets.lost()


@given(st.lists(st.tuples(st.sampled_from("abcd"), observations)), st.sampled_from(({}, {"a": "out", "c": "in"})))
def test_a_chain_shares_out_its_loss(observed: list[tuple[str, Observation]], stamps: dict[str, str]) -> None:
    """In a chain, every id lost end to end is lost at exactly one node, whatever is observed."""
    _loss_is_shared_out(WindowSets(parse(CHAIN["path"], stamps), observed))


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghi"), observations)),
    st.tuples(*[st.sampled_from(WAYS)] * 10),
)
def test_a_tree_of_branches_shares_out_its_loss(observed: list[tuple[str, Observation]], ways: tuple[str, ...]) -> None:
    """In a tree of branches, every id lost end to end is lost at exactly one node if messages take one way of each."""
    on_way = [(node, one) for node, one in observed if node in ways[one.message_id[-1]]]
    _loss_is_shared_out(WindowSets(parse(TREE, {"c": "in", "d": "out"}), on_way))


@settings(max_examples=examples(30))
@given(dials())
def test_what_is_known_has_one_end(thrown: Dials) -> None:
    """Each known message is delivered, filtered, rejected or lost; losses are within bounds, and accounts add up."""
    with tempfile.TemporaryDirectory() as directory:
        scenario = generate(thrown, Path(directory))
        found = report(scenario.streams, scenario.spool_dir)
    accounts = found["accounts"]
    assert accounts["records"] == accounts["batches"] + sum(accounts["set_aside"].values())
    assert sum(accounts["set_aside"].values()) == scenario.set_aside
    for window in (one for stream in found["streams"] for one in stream["windows"]):
        assert window["known"] == window["delivered"] + window["filtered"] + window["rejected"] + window["lost"]
        for low, mid, high in _bounds(window):
            assert low <= mid
            assert high is None or mid <= high
        for node in window["nodes"]:
            assert node["loss"] == node["lost_in_transit"] + node["lost_inside"] + node["lost_after"]


def _bounds(window: dict[str, Any]) -> list[tuple[int, int, int | None]]:
    nodes = [(node["loss_lower"], node["loss"], node["loss_upper"]) for node in window["nodes"]]
    return [(window["lost_lower"], window["lost"], window["lost_upper"]), *nodes]


@pytest.mark.parametrize(("path", "order"), [
    ("a -> b -> c", "abc"),
    (["c -> b", "a -> c"], "acb"),
    (["a -> b -> c", "d -> c"], "abdc"),
    (["x -> d", "a -> b | c -> d"], "xabcd"),
    ("a", "a"),
])  # fmt: skip
def test_nodes_come_in_pathway_order(path: str | list[str], order: str) -> None:
    """Of the nodes that no node left leads to, the first mentioned comes first."""
    assert "".join(parse(path, {}).nodes) == order


def test_stopped_messages_are_not_lost(tmp_path: Path) -> None:
    """Filtered and rejected are counted apart, both is rejected, and one that went on is neither."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b"})
    hand.say("a", 0, 30, passed(1, 2, 3, 4))
    stops = [
        Row(1, None, None, FILTERED),
        Row(2, outcome=REJECTED),
        Row(2, outcome=FILTERED),
        Row(3, outcome=FILTERED),
        Row(3),
    ]
    hand.say("b", 0, 30, [*stops, *came(4)])
    window = hand.window()
    node = window["nodes"]["b"]
    assert (node["filtered"], node["rejected"], node["lost_inside"], node["arrived"], node["departed"]) == (
        1,
        1,
        1,
        3,
        1,
    )
    assert (window["filtered"], window["rejected"], window["delivered"], window["lost"]) == (1, 1, 1, 1)


def test_two_groups_are_judged_apart(tmp_path: Path) -> None:
    """A message that takes one of the first group and none of the second is lost after the branch, once."""
    hand = SpoolWriter(tmp_path, {"path": ["a -> b | c", "a -> d | e"]})
    hand.say("a", 0, 30, passed(1, 2, 3))
    hand.say("b", 0, 30, passed(1, 2))
    hand.say("d", 0, 30, passed(1))
    window = hand.window()
    node = window["nodes"]["a"]
    assert (node["lost_after"], node["loss"], [int(one, 16) for one in node["lost_ids"]]) == (2, 2, [2, 3])
    assert (window["delivered"], window["lost"], window["partial"]) == (1, 2, 1)


def test_what_one_way_lost_is_lost(tmp_path: Path) -> None:
    """With `&` a message is owed to both sides: one that a side lost is lost, and partial if the other let it out."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b & c"})
    hand.say("a", 0, 30, passed(1, 2, 3, 4))
    hand.say("b", 0, 30, [*passed(1, 2), Row(4, outcome=FILTERED)])
    hand.say("c", 0, 30, passed(1))
    window = hand.window()
    assert (window["delivered"], window["lost"], window["partial"], window["filtered"]) == (1, 3, 1, 0)
    assert [node["loss"] for node in window["nodes"].values()] == [0, 1, 3]


def test_a_message_is_stopped_by_what_stopped_it(tmp_path: Path) -> None:
    """Rejected at a, sent again and filtered at b: one filtered, at b and end to end."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b"})
    hand.say("a", 0, 30, [Row(1, outcome=REJECTED)])
    hand.say("b", 0, 30, [Row(1, outcome=FILTERED)])
    window = hand.window()
    assert (window["filtered"], window["rejected"]) == (1, 0)
    assert [(node["filtered"], node["rejected"]) for node in window["nodes"].values()] == [(0, 0), (1, 0)]


def test_missed_by_a_probe_is_not_lost(tmp_path: Path) -> None:
    """Seen below is unobserved where it was expected; seen nowhere above is an orphan, but not at an origin."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b -> c"})
    hand.say("a", 0, 30, passed(1))
    hand.say("c", 0, 30, passed(1, 2))
    nodes = hand.window()["nodes"]
    assert [(node["unobserved"], node["orphans"], node["loss"]) for node in nodes.values()] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
    ]


def test_any_stamp_counts_for_both_at_a_one_sided_node(tmp_path: Path) -> None:
    """At a one-sided node any stamp is an arrival and a departure, with lags both ways and no time inside."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b", "stamps": {"b": "in"}})
    hand.say("b", 0, 30, [Row(1, 5, None), Row(2, None, -7), Row(2, None, -7), Row(3, 4, None, FILTERED)])
    node = hand.window()["nodes"]["b"]
    assert (node["arrived"], node["departed"], node["duplicates_in"], node["duplicates_out"]) == (3, 2, 1, 1)
    assert (node["lag_in_us"]["count"], node["lag_out_us"]["count"], node["lag_negative"]) == (4, 3, 4)
    assert (node["inside_us"], node["process_duration_p95_us"]) == (None, None)


def test_a_batch_that_comes_twice_counts_once(tmp_path: Path) -> None:
    """Of two batches with one number the earlier arrival counts, wherever it lies; observations twice count twice."""
    hand = SpoolWriter(tmp_path, {"path": "a"})
    hand.say("a", 0, 40, passed(9))
    hand.say("a", 0, 30, passed(1, 1))
    found, node = hand.report()["accounts"], hand.window()["nodes"]["a"]
    assert (node["seen"], node["duplicates_in"], node["lag_in_us"]["count"]) == (1, 1, 2)
    assert (found["batches"], found["duplicate_batches"], found["observations"]) == (2, 1, 3)


def test_lag_end_to_end_is_that_of_the_terminals(tmp_path: Path) -> None:
    """All terminals are taken together; the time inside is theirs that carry both stamps and passed."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b & c"})
    hand.say("b", 0, 30, [Row(1, 10, 30), Row(2, None, 50), Row(3, 1, 99, FILTERED)])
    hand.say("c", 0, 30, [Row(1, 10, 20)])
    window = hand.window()
    assert window["lag_us"] == {"count": 3, "min": 20, "p50": 30, "p95": 50, "p99": 50, "max": 50}
    assert window["nodes"]["b"]["inside_us"]["p50"] == 20
    assert window["nodes"]["b"]["process_duration_p95_us"] == 40


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.sampled_from((50, 95, 99)))
def test_a_quantile_is_the_smallest_with_its_rank(lags_us: list[int], percent: int) -> None:
    """At least that share is not above it, and less is not above anything smaller."""
    found = quantile(lags_us, percent)
    below, not_above = rank_interval(lags_us, found)
    assert found in lags_us
    assert round(below * len(lags_us)) * 100 < percent * len(lags_us) <= round(not_above * len(lags_us)) * 100


def test_no_lag_has_no_quantiles() -> None:
    """Without stamps there is nothing to tell; with one it is every quantile."""
    assert quantiles([]) is None
    assert quantiles([-4]) == {"count": 1, "min": -4, "p50": -4, "p95": -4, "p99": -4, "max": -4}
