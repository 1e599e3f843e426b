"""Tests of counts by label: whose values split which node, bounds on what strangers may say, and bounds of a loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopwatch.monitor.kernel import label_table, labels
from hopwatch.monitor.kernel.label_table import find_sources, tabulate_labels
from hopwatch.monitor.kernel.observed_batches import ObservedBatch
from hopwatch.monitor.kernel.tally import NEVER_US, build_tally, merge_tallies
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import pack_tally, unpack_tally
from hopwatch.monitor.results import LabelCounts, LabelValueKind, NodeResult, Status
from hopwatch.probes.contract.ids import id_bytes
from tests.support.batch_arrays import complete_books, passed_batch

CHAIN = Pathway.parse("a -> b")


def said(node: int, numbers: range, **own: str) -> ObservedBatch:
    """Return a batch of messages that passed a node, with labels."""
    return passed_batch(node, list(map(id_bytes, numbers)))._replace(labels=tuple(sorted(own.items())))


def judge(batches: list[ObservedBatch], pathway: Pathway = CHAIN) -> tuple[tuple[LabelCounts, ...], ...]:
    """Return the rows of each node of a final window, whose books are complete."""
    tally = unpack_tally(pack_tally(build_tally(pathway, batches, 60)))
    stage = WindowStage("orders", 0, Status.FINAL)
    nodes = conclude_window(pathway, stage, tally, complete_books(*"c" * len(pathway.nodes))).nodes
    return tabulate_labels(pathway, tally, nodes, NEVER_US, is_final=True)


def brief(rows: tuple[LabelCounts, ...]) -> list[tuple[str, str, str, int, int]]:
    """Return source, kind, value, messages and loss of each row."""
    return [(row.said_at, row.kind.value, row.value, row.expected_or_seen, row.loss) for row in rows]


def test_what_is_lost_on_the_way_has_the_values_of_the_node_before() -> None:
    """The host that sent it, and not that of the node which it did not reach."""
    at_a, at_b = judge([said(0, range(4), host="a1"), said(0, range(4, 6), host="a2"), said(1, range(3), host="b1")])
    assert brief(at_a) == [("a", "VALUE", "a1", 4, 0), ("a", "VALUE", "a2", 2, 0)]
    assert brief(at_b) == [("a", "VALUE", "a2", 2, 2), ("a", "VALUE", "a1", 4, 1), ("b", "VALUE", "b1", 3, 0)]


def test_a_message_of_two_hosts_counts_with_each() -> None:
    """Both have seen it: either may be where it was lost. Messages without a host are told apart."""
    batches = [said(0, range(2), host="a1"), said(0, range(1, 3), host="a2"), said(0, range(2, 5)), said(1, range(1))]
    _, at_b = judge(batches)
    assert brief(at_b) == [("a", "VALUE", "a2", 2, 2), ("a", "VALUE", "a1", 2, 1), ("a", "NONE", "", 2, 2)]


@pytest.mark.parametrize(
    ("path", "saying", "node", "expected"),
    [
        ("a -> b -> c -> d", "ab", "d", "b"),
        ("a -> b -> c -> d", "abd", "d", "bd"),
        ("a -> b -> c -> d", "d", "c", ""),
        (["a -> b & c", "b -> d", "c -> d"], "ab", "d", "ab"),
        (["a -> b & c", "b -> d", "c -> d"], "abc", "d", "bc"),
    ],
)
def test_sources_are_the_node_and_the_nearest_before_it(
    path: str | list[str], saying: str, node: str, expected: str
) -> None:
    """Along each way back to the first node that says the label."""
    pathway = Pathway.parse(path)
    places = [pathway.nodes.index(one) for one in saying]
    found = find_sources(pathway, pathway.nodes.index(node), places)
    assert "".join(pathway.nodes[place] for place in found) == expected


def test_a_value_a_message_is_kept_within_bounds() -> None:
    """Values with a loss are shown before all others, the rest is one row, and nothing is lost twice or forgotten."""
    batches = [said(0, range(n, n + 1), request=f"<b>{n:05}\0") for n in range(3_000)]
    _, at_b = judge([*batches, said(1, range(2_990))])
    values, other = at_b[:-1], at_b[-1]
    assert len(values) == label_table.MAX_SHOWN_VALUES
    assert [row.value for row in values[:10]] == [f"<b>{n:05}\0" for n in range(2_990, 3_000)]
    assert [(row.loss, row.loss_lower) for row in values] == [(1, 1)] * 10 + [(0, 0)] * 40
    assert (other.kind, other.expected_or_seen, other.loss) == (LabelValueKind.OTHER, 2_950, 0)
    tally = build_tally(CHAIN, batches, 60).labels
    assert tally is not None
    assert len(tally.keys) == labels.MAX_KEPT_VALUES + 2


def test_the_first_labels_by_name_count() -> None:
    """As many as one batch may have, even if batches of one node have different ones."""
    (at_a, _) = judge([said(0, range(n, n + 1), **{f"label{n:02}": "x"}) for n in range(20)])
    assert [row.label for row in at_a if row.kind is LabelValueKind.VALUE] == [f"label{n:02}" for n in range(8)]
    assert {row.expected_or_seen for row in at_a if row.kind is LabelValueKind.NONE} == {19}


def test_the_first_labels_of_all_shards_count() -> None:
    """A label that is among the first of one shard alone would be counted in a part of the messages that have it."""
    many = [said(0, range(n, n + 1), **{f"label{n:02}": "x"}) for n in range(9)]
    batches = [*many, said(0, range(9, 30), label08="x")]
    shards = [[one for one in batches if (len(one.message_ids) > 1) == is_last] for is_last in (False, True)]
    merged = merge_tallies([build_tally(CHAIN, part, 60) for part in shards]).labels
    whole = build_tally(CHAIN, batches, 60).labels
    assert merged is not None
    assert whole is not None
    assert merged.keys == whole.keys
    assert {key.label for key in merged.keys} == {f"label{n:02}" for n in range(8)}


def test_others_are_surely_lost_only_where_the_whole_node_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message with several of their values counts with each: more may be unsure than the node has."""
    monkeypatch.setattr(label_table, "MAX_SHOWN_VALUES", 0)
    tally = build_tally(CHAIN, [said(0, range(4), host="a1"), said(0, range(4), host="a2"), said(1, range(1))], 60)
    node = conclude_window(CHAIN, WindowStage("orders", 0, Status.FINAL), tally, complete_books("c", "c")).nodes[1]
    assert (node.loss, node.loss_lower) == (3, 3)

    def bounds_of(of_node: NodeResult) -> list[tuple[int, int, int | None]]:
        rows = tabulate_labels(CHAIN, tally, [of_node, of_node], NEVER_US, is_final=True)[1]
        return [(row.loss, row.loss_lower, row.loss_upper) for row in rows]

    assert bounds_of(node) == [(6, 6, 6)]
    assert bounds_of(replace(node, loss_lower=2, loss_upper=5)) == [(6, 0, 8)]
    assert bounds_of(replace(node, loss_lower=2, loss_upper=None)) == [(6, 0, None)]


def test_a_loss_that_is_unknown_stays_unknown_in_each_row() -> None:
    """A node may have missed some: no value has more surely lost than the others cannot explain."""
    batches = [said(0, range(6), host="a1"), said(0, range(6, 8), host="a2"), said(1, range(1))]
    tally = build_tally(CHAIN, batches, 60)
    stage = WindowStage("orders", 0, Status.FINAL)
    result = conclude_window(CHAIN, stage, tally, complete_books("c", "d"))
    rows = tabulate_labels(CHAIN, tally, result.nodes, NEVER_US, is_final=True)[1]
    assert (result.nodes[1].loss, result.nodes[1].loss_lower) == (7, 4)
    assert [(row.value, row.loss, row.loss_lower, row.loss_upper) for row in rows] == [
        ("a1", 5, 2, 8),
        ("a2", 2, 0, 5),
    ]


def test_an_open_window_has_lost_nothing() -> None:
    """Missing messages are in flight, in rows as in the node."""
    tally = build_tally(CHAIN, [said(0, range(3), host="a1")], 60)
    result = conclude_window(CHAIN, WindowStage("orders", 0, Status.OPEN), tally, complete_books("c", "c"))
    (row,) = tabulate_labels(CHAIN, tally, result.nodes, NEVER_US, is_final=False)[1]
    assert (row.loss, row.in_flight, row.loss_lower, row.loss_upper) == (0, 3, 0, 0)


def test_shards_without_labels_still_have_messages_without_a_value() -> None:
    """A shard none of whose batches has a label counts nothing, and the whole knows of its messages."""
    parts = [build_tally(CHAIN, [said(0, range(3))], 60), build_tally(CHAIN, [said(0, range(3, 5), host="a1")], 60)]
    whole = merge_tallies(parts)
    result = conclude_window(CHAIN, WindowStage("orders", 0, Status.FINAL), whole, complete_books("c", "c"))
    rows = tabulate_labels(CHAIN, whole, result.nodes, NEVER_US, is_final=True)[0]
    assert brief(rows) == [("a", "VALUE", "a1", 2, 0), ("a", "NONE", "", 3, 0)]
