"""Tests of the lines on what a delivery rejects and defers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hopwatch.deliver.message import DeliveryMessage, SourcePosition
from hopwatch.deliver.settlement import Ending, Settlement
from hopwatch.deliver.settlement_report import REPORT_S, SettlementReport


def settled(ending: Ending, reason: str = "") -> Settlement:
    """Return a settlement with this end."""
    return Settlement(DeliveryMessage(SourcePosition("orders", 0, 0), "a", 1, None, b"{}"), ending, 2, reason=reason)


def test_the_first_is_told_at_once_and_the_next_once_a_minute() -> None:
    """With how many there were since, the reason of the last, and where what was rejected is listed."""
    lines: list[str] = []
    report = SettlementReport("billing", lines.append)
    report.add_settlements([settled(Ending.DELIVERED)], 0.0)
    assert lines == []
    report.add_settlements([settled(Ending.REJECTED, "HTTP 404 Not Found")], 1.0)
    report.add_settlements([settled(Ending.DEFERRED, "no connection: Connection refused")] * 2, 1.0)
    report.add_settlements([settled(Ending.REJECTED, "HTTP 400 Bad Request")] * 1_000, 2.0)
    report.add_settlements([settled(Ending.DELIVERED), settled(Ending.REJECTED, "HTTP 410 Gone")], 1.0 + REPORT_S)
    listed = "'hopwatch quarantine list --delivery billing' has all"
    assert lines == [
        f"billing: 1 rejected, the last one for this reason: HTTP 404 Not Found; {listed}",
        "billing: 2 deferred to a retry topic, the last one for this reason: no connection: Connection refused",
        f"billing: 1,001 rejected, the last one for this reason: HTTP 410 Gone; {listed}",
    ]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 500)), max_size=50))
def test_lines_are_few_and_count_each_message_once(waits: list[tuple[float, int]]) -> None:
    """At most one line comes in each begun minute, however many are deferred, and no message is counted twice."""
    lines: list[str] = []
    report, now_s, deferred = SettlementReport("billing", lines.append), 0.0, 0
    for wait_s, count in waits:
        now_s, deferred = now_s + wait_s, deferred + count
        report.add_settlements([settled(Ending.DEFERRED, "HTTP 500")] * count, now_s)
    assert len(lines) <= now_s // REPORT_S + 1
    told = sum(int(line.split()[1].replace(",", "")) for line in lines)
    assert told <= deferred
    assert bool(lines) == bool(deferred)
