"""Tests of the names that no configuration declares: gathered from records, kept within bounds, told in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.accounting import undeclared_names
from hopwatch.monitor.accounting.undeclared_names import MAX_NAMES, UndeclaredName
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.payloads import SendingInstance, SetAside
from hopwatch.monitor.row_kinds import SET_ASIDE_ROW
from hopwatch.monitor.spark.decoder import decode_segments
from hopwatch.monitor.stream_config import StreamConfig
from tests.monitor.undeclared_records import DECLARED, aside
from tests.support.spool import STREAM_CONFIGS, WINDOW_POLICY, at_us, observation_batch, write_segment


@pytest.mark.parametrize(
    ("stream", "node", "reason"), [("orders", "z", "unknown_node"), ("odrers", "a", "unknown_stream")]
)
def test_a_record_that_is_set_aside_for_its_name_says_whose_it_is(
    stream: str, node: str, reason: str, tmp_path: Path
) -> None:
    """Stream, node, probe and start of the instance travel with it."""
    path = write_segment(tmp_path / "s.seg", observation_batch([1], node, stream=stream))
    (row,) = [row for row in decode_segments([str(path)], STREAM_CONFIGS) if row.kind == SET_ASIDE_ROW]
    found = SetAside.unpack(row.payload)
    assert (found.reason, found.sender) == (reason, SendingInstance(stream, node, f"probe-of-{node}", at_us(-10)))


def test_a_record_that_cannot_be_read_is_nobodys(tmp_path: Path) -> None:
    """There is no name to tell."""
    (row,) = [
        row
        for row in decode_segments([str(write_segment(tmp_path / "s.seg", b"broken"))], STREAM_CONFIGS)
        if row.kind == SET_ASIDE_ROW
    ]
    assert SetAside.unpack(row.payload).sender is None


NEAREST = {
    "a letter too many": ("routerr", ("ingest", "router"), "router"),
    "other letters": ("ROUTER", ("ingest", "router"), "router"),
    "swapped": ("odrers", ("orders", "payments"), "orders"),
    "nothing near": ("zzz", ("orders", "payments"), ""),
    "nothing declared": ("orders", (), ""),
}


@pytest.mark.parametrize(("name", "declared", "expected"), NEAREST.values(), ids=NEAREST)
def test_the_nearest_declared_name_is_found(name: str, declared: tuple[str, ...], expected: str) -> None:
    """Small and capital letters are alike."""
    assert undeclared_names.find_nearest(name, declared) == expected


@given(st.lists(st.integers(0, MAX_NAMES + 50), max_size=600))
def test_there_are_never_more_names_than_the_bound(numbers: list[int]) -> None:
    """Names beyond the bound are counted as one, and every record is counted."""
    records = [aside(SendingInstance("orders", f"n{number}", "p", 0)) for number in numbers]
    kept: dict[undeclared_names.NameKey, UndeclaredName] = {}
    for start in range(0, len(records), 100):
        kept = undeclared_names.merge_records(kept, records[start : start + 100], DECLARED)
    named = [one for one in kept.values() if one.node]
    assert len(named) == min(MAX_NAMES, len(set(numbers)))
    assert len(kept) <= MAX_NAMES + 1
    assert sum(one.records for one in kept.values()) == len(numbers)


@given(st.permutations(range(30)))
def test_all_probes_of_a_misspelt_name_are_one_with_the_newest_told(starts: list[int]) -> None:
    """All probes of an undeclared name are one entry with the newest probe, in any order."""
    records = [aside(SendingInstance("orders", "routr", f"pod-{start}", at_us(start))) for start in starts]
    (found,) = undeclared_names.merge_records({}, records, DECLARED).values()
    assert found == UndeclaredName(
        "unknown_node", "orders", "routr", "pod-29", at_us(29), "router", 30, at_us(70), at_us(70)
    )


SAID = {
    "a node": (
        UndeclaredName("unknown_node", "orders", "routr", "h-1", at_us(0), "router", 1_200, 0, at_us(70)),
        (
            "1,200 records of 'orders' name the node 'routr', which its path does not have: did you mean 'router'? "
            "Newest probe: 'h-1', started 2026-01-01T00:00:00Z; the last arrived 2026-01-01T00:01:10Z"
        ),
    ),
    "a stream": (
        UndeclaredName("unknown_stream", "ordres", "a", "h-1", at_us(0), "orders", 1, 0, at_us(70)),
        (
            "1 record names the stream 'ordres', which is not declared: did you mean 'orders'? "
            "Newest probe: 'h-1' at node 'a', started 2026-01-01T00:00:00Z; the last arrived 2026-01-01T00:01:10Z"
        ),
    ),
    "nothing near, and a hostile probe": (
        UndeclaredName("unknown_stream", "x", "a", "\x1b[2J\n\u202e", 2**62, "", 2, 0, at_us(70)),
        (
            "2 records name the stream 'x', which is not declared. "
            "Newest probe: '\\x1b[2J\\n\\u202e' at node 'a'; the last arrived 2026-01-01T00:01:10Z"
        ),
    ),
    "others": (
        UndeclaredName("unknown_node", "", "", "", 0, "", 7, 0, at_us(70)),
        (
            f"7 records name other nodes that no path has: only the first {MAX_NAMES} names are kept; "
            "the last arrived 2026-01-01T00:01:10Z"
        ),
    ),
    "other streams": (
        UndeclaredName("unknown_stream", "", "", "", 0, "", 1, 0, at_us(70)),
        (
            f"1 record names other streams that are not declared: only the first {MAX_NAMES} names are kept; "
            "the last arrived 2026-01-01T00:01:10Z"
        ),
    ),
}


@pytest.mark.parametrize(("one", "words"), SAID.values(), ids=SAID)
def test_a_name_is_told_with_what_may_be_meant(one: UndeclaredName, words: str) -> None:
    """Escaped, because strangers chose it."""
    assert undeclared_names.describe_name(one) == words


def test_rules_need_no_terms_to_be_near() -> None:
    """A node is looked for in its own stream's path alone."""
    rules = {
        "a": StreamConfig(Pathway.parse("in -> out"), WindowPolicy(1, 1, 1, 1)),
        "b": StreamConfig(Pathway.parse("inn -> x"), WINDOW_POLICY),
    }
    kept = undeclared_names.merge_records({}, [aside(SendingInstance("a", "inn", "p", 0))], rules)
    assert [one.nearest for one in kept.values()] == ["in"]
