"""Tests of the lines on nodes that only count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopwatch.display.counts import describe_counts, describe_servers
from hopwatch.monitor.results import NodeCounts, ServerCount

NONE = NodeCounts("packets", 10_412, 10_412, 0, 0, 1.0, None, None, None, 0, None, None, None)
AT_FILE = replace(NONE, behind="file", seen_behind=10_409)
FROM_GATE = replace(NONE, before="gate", left_before=10_415)

LINES: dict[str, tuple[NodeCounts, str]] = {
    "alone": (NONE, "packets, by count: 10,412 came"),
    "fewer behind": (AT_FILE, "packets, by count: 10,412 came; 10,409, 3 fewer, seen at file by ids"),
    "others behind": (
        replace(AT_FILE, seen_behind=10_412, same_behind=False),
        "packets, by count: 10,412 came; 10,412, seen at file by ids, other messages by fingerprint",
    ),
    "the same behind": (
        replace(AT_FILE, seen_behind=10_412, same_behind=True),
        "packets, by count: 10,412 came; the same 10,412 seen at file by ids, by fingerprint",
    ),
    "lost before": (
        replace(FROM_GATE, lost_before_lower=3),
        "packets, by count: 10,412 came; 10,415, 3 more, left gate by ids, at least 3 lost on the way",
    ),
    "all else": (
        replace(NONE, departed=10_000, bytes=1_234_567, dropped=7),
        "packets, by count: 10,412 came; 10,000 left; 1,234,567 bytes; its probes dropped 7",
    ),
}


@pytest.mark.parametrize(("one", "line"), LINES.values(), ids=LINES)
def test_a_count_is_told_beside_the_ids(one: NodeCounts, line: str) -> None:
    """The number, that by ids, and whether these are the same messages; always marked as by count."""
    assert describe_counts(one) == line


def test_servers_are_named_the_first_few() -> None:
    """Of a single one nothing is left to say."""
    servers = tuple(ServerCount(f"server-{number}", 1_000 * number) for number in range(1, 8))
    assert describe_servers(replace(NONE, servers=servers[:1])) == ""
    assert describe_servers(replace(NONE, servers=servers[:2])) == "server-1 1,000, server-2 2,000"
    assert describe_servers(replace(NONE, servers=servers)).endswith("server-5 5,000, and 2 more")
