"""Tests of the lines on nodes that only count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hopwatch.display.counts import MAX_APART, describe_counts, describe_servers
from hopwatch.monitor.results import NodeCounts, Quantiles, ServerCount

P95 = Quantiles(10_412, 1_000, 2_000, 250_000, 900_000, 2_000_000)
NONE = NodeCounts("packets", 10_412, 10_412, 0, 0, 1.0, None, None, None, 0, None, None, None)
AT_FILE = replace(NONE, behind="file", seen_behind=10_409)
FROM_GATE = replace(NONE, before="gate", left_before=10_415)

LINES: dict[str, tuple[NodeCounts, str]] = {
    "alone": (NONE, "packets, by count: 10,412 came"),
    "fewer behind": (AT_FILE, "packets, by count: 10,412 came; 10,409 seen at file by ids, 3 fewer"),
    "others behind": (
        replace(AT_FILE, seen_behind=10_412, same_behind=False),
        "packets, by count: 10,412 came; 10,412 seen at file by ids, other messages by fingerprint",
    ),
    "the same behind": (
        replace(AT_FILE, seen_behind=10_412, same_behind=True),
        "packets, by count: 10,412 came; the same 10,412 seen at file by ids, by fingerprint",
    ),
    "lost before": (
        replace(FROM_GATE, lost_before_lower=3),
        "packets, by count: 10,412 came; 10,415 left gate by ids, 3 more, at least 3 lost on the way",
    ),
    "all else": (
        replace(NONE, departed=10_000, bytes=1_234_567, dropped=7),
        "packets, by count: 10,412 came; 10,000 left; 1,234,567 bytes; its probes dropped 7",
    ),
    "lag on one side": (
        replace(NONE, lag_in_us=P95, lag_out_us=P95),
        "packets, by count: 10,412 came; p95 lag 250.0 ms",
    ),
    "lag of some": (
        replace(NONE, lag_in_us=replace(P95, count=1_500)),
        "packets, by count: 10,412 came; in p95 lag 250.0 ms, told of 1,500",
    ),
    "lag on both sides": (
        replace(NONE, departed=10_000, lag_in_us=P95, lag_out_us=replace(P95, count=10_000, p95=1_250_000)),
        "packets, by count: 10,412 came; 10,000 left; in p95 lag 250.0 ms; out p95 lag 1.2 s",
    ),
}


@pytest.mark.parametrize(("one", "line"), LINES.values(), ids=LINES)
def test_a_count_is_told_beside_the_ids(one: NodeCounts, line: str) -> None:
    """The number, that by ids, and whether these are the same messages; always marked as by count."""
    assert describe_counts(one) == line


def test_servers_are_named_the_first_few() -> None:
    """Of a single one nothing is left to say."""
    servers = tuple(ServerCount(f"server-{number}", 1_000 * number) for number in range(1, 8))
    assert describe_servers(replace(NONE, servers=servers[:1])) == []
    assert describe_servers(replace(NONE, servers=servers[:2])) == ["server-1 1,000, server-2 2,000"]
    assert describe_servers(replace(NONE, servers=servers))[0].endswith("server-5 5,000, and 2 more")


SEVEN = ServerCount("server-7", 10_412, 10_412, seen_behind=10_409, same_behind=False)
ALIKE = ServerCount("server-8", 5, 5, seen_behind=5, same_behind=True)
NINE = replace(ALIKE, probe="server-9", left_before=5)
NAMED = replace(SEVEN, left_before=10_412, same_before=True, missing_behind=3, missing_ids=("a", "b", "c"))
STRANGE = replace(NAMED, probe="a\nCLEAN\0[red]", missing_behind=1, missing_ids=("\x1b[2J",))
FEWER = "10,412 by count; 10,409 at file, 3 fewer"
SERVERS: dict[str, tuple[tuple[ServerCount, ...], list[str]]] = {
    "fewer in its file": ((SEVEN, ALIKE), [f"server-7: {FEWER}", "1 server as at file"]),
    "these are not in it": ((NAMED,), [f"server-7: {FEWER}; 3 missing at file: a, b, c"]),
    "more than are named": (
        (replace(ALIKE, left_before=5, missing_behind=4, missing_ids=("a", "b", "c", "d")),),
        ["server-8: 5 by count; 4 missing at file: a, b, c, …"],
    ),
    "others": (
        (replace(ALIKE, same_behind=False),),
        ["server-8: 5 by count; 5 at file, other messages by fingerprint"],
    ),
    "no file": (
        (ALIKE, ServerCount("server-9", 5, 5)),
        ["server-9: 5 by count; none at file", "1 server as at file"],
    ),
    "nothing to count": ((ALIKE, ServerCount("server-9", 0, 0)), ["2 servers as at file"]),
    "no packet": (
        (ALIKE, ServerCount("server-9", None, seen_behind=6)),
        ["server-9: no packet; 6 at file", "1 server as at file"],
    ),
    "nothing left": (
        (ALIKE, NINE, replace(NINE, probe="server-10")),
        ["server-8: 5 by count; none left gate", "2 servers as at gate and file"],
    ),
    "names of strangers": ((STRANGE,), [f"a\\nCLEAN\\x00[red]: {FEWER}; 1 missing at file: \\x1b[2J"]),
    "very many": (
        tuple(replace(SEVEN, probe=f"server-{number}") for number in range(1_000)),
        ["and 980 more servers that differ, which --json shows"],
    ),
}


@pytest.mark.parametrize(("servers", "lines"), SERVERS.values(), ids=SERVERS)
def test_a_server_that_differs_from_the_ids_beside_it_has_a_line(
    servers: tuple[ServerCount, ...], lines: list[str]
) -> None:
    """Its count, what the ids of its name are, and which are missing; the others are only counted."""
    told = describe_servers(replace(NONE, before="gate", behind="file", servers=servers))
    assert told[-len(lines) :] == lines
    assert len(told) == (1 + MAX_APART if len(servers) > MAX_APART else len(lines))
