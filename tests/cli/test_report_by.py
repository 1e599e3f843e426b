"""Tests of ``hopwatch report --by``: the JSON, the table as text, and which hours fail on loss."""

from __future__ import annotations

import json

import pytest

from hopwatch.probes.contract.batch import BatchKind, Metrics, MetricsStamp
from tests.model.counts import fingerprint
from tests.support.spool import at_us, make_batch, observation_batch, pack_ids, window_ms
from tests.support.workspace import CONFIGURATION, Workspace, one_of_ten_lost

Captured = pytest.CaptureFixture[str]
FIELDS = (
    *("start", "windows", "verdicts", "known", "delivered", "filtered", "rejected", "lost", "partial"),
    *("lost_lower", "lost_upper", "loss_ratio", "in_flight", "recovered", "lag_us", "nodes", "deferred", "counts"),
)


@pytest.mark.parametrize(("by", "name"), [("hour", "hours"), ("day", "days")])
def test_hours_and_days_are_told_to_the_digit(by: str, name: str, workspace: Workspace, capsys: Captured) -> None:
    """One of ten lost at the second node, within minutes of which the others were idle."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--by", by, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["streams", "accounts", "read_through"]
    ((one,),) = [stream[name] for stream in told["streams"]]
    assert tuple(one) == FIELDS
    assert (one["start"], one["known"], one["delivered"], one["lost"]) == ("2026-01-01T00:00:00Z", 10, 9, 1)
    assert (one["lost_lower"], one["lost_upper"], one["loss_ratio"]) == (1, 1, 0.1)
    assert one["verdicts"]["LOSSY"] == 1
    assert sum(one["verdicts"].values()) == one["windows"]
    assert one["lag_us"] == {"count": 9, "min": 2_000, "p50": 2_000, "p95": 2_000, "p99": 2_000, "max": 2_000}
    a, b = one["nodes"]
    assert (a["node"], a["seen"], a["loss"], a["lag_in_us"]["count"]) == ("a", 10, 0, 10)
    assert (b["node"], b["seen"], b["loss"], b["loss_ratio"], b["process_duration_p95_us"]) == ("b", 9, 1, 0.1, 1_000)
    assert one["counts"] == []


def test_hours_are_drawn_one_a_row(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Verdicts counted, loss end to end with its bounds, loss of each node, lag; and the accounts."""
    monkeypatch.setenv("COLUMNS", "300")
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--by", "hour") == 0
    title, head, _, row, accounts, _ = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert title.strip() == "stream orders"
    assert head.split() == [
        *("hour", "windows", "clean", "lossy", "unknown", "silent", "idle", "known", "delivered", "missing"),
        *("surely", "lost", "at", "most", "lost", "%", "loss", "a", "loss", "b"),
        *("lag", "p50", "lag", "p95", "lag", "p99", "lag", "max"),
    ]
    assert " ".join(row.split()) == "2026-01-01 00:00Z 1 0 1 0 0 0 10 9 1 1 1 10.0% 0 1" + 4 * " 2.0 ms"
    assert accounts == "4 records, 19 observations"


def test_days_are_drawn_by_their_date(workspace: Workspace, capsys: Captured) -> None:
    """UTC, as everywhere."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--by", "day") == 0
    out = capsys.readouterr().out
    assert " 2026-01-01 " in out
    assert "00:00Z" not in out


def test_a_stream_without_a_final_window_is_told(workspace: Workspace, capsys: Captured) -> None:
    """Its people have to know that nothing came."""
    workspace.watch()
    assert workspace.run("report", "--by", "hour") == 0
    assert "stream orders: no final window for the time that is shown\n" in capsys.readouterr().out


@pytest.mark.parametrize(("ratio", "code"), [("0.1", 0), ("0.09", 1)])
def test_an_hour_that_surely_lost_more_fails(ratio: str, code: int, workspace: Workspace) -> None:
    """Over all of its windows."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--by", "hour", "--fail-on-loss", ratio) == code


def counted(workspace: Workspace, *numbers: int) -> None:
    """Let ten messages leave a in each minute around the first full hour, of which a node behind it counts so many."""
    workspace.configure(CONFIGURATION.replace('"a -> b"', '"a -> n"\nstamps = { n = "count" }'))
    records = []
    for seq, number in enumerate(numbers):
        start_ms = window_ms(59 + seq)
        counts = (Metrics(MetricsStamp.IN, number, *fingerprint(map(pack_ids, range(number)))),)
        records += [
            observation_batch(range(10), seq=seq, window_start_ms=start_ms),
            make_batch(BatchKind.METRICS, "n", seq=seq, window_start_ms=start_ms, metrics=counts),
        ]
    through_us = at_us(4_000)
    byes = [make_batch(BatchKind.BYE, node, seq=len(numbers), complete_through_us=through_us) for node in "an"]
    workspace.watch(*records, *byes, arrival_us=through_us)


@pytest.mark.parametrize("by", [[], ["--by", "hour"], ["--by", "day"]])
def test_a_loss_by_count_fails_by_whatever_span_it_is_reported(by: list[str], workspace: Workspace) -> None:
    """The ids know of none; the ratio is that of the span, which a good hour dilutes in its day."""
    counted(workspace, 10, 7)
    assert workspace.run("report", *by, "--fail-on-loss", "0") == 1
    assert workspace.run("report", *by, "--fail-on-loss", "0.15") == int("day" not in by)
    assert workspace.run("report", *by, "--fail-on-loss", "0.3") == 0


@pytest.mark.parametrize(("number", "lost"), [(10, "0"), (7, "3 to ?"), (11, "?")])
def test_hours_draw_what_was_lost_by_count(
    number: int, lost: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Beside the losses by ids: none where all windows say so, at least so many, or ? where nobody knows."""
    monkeypatch.setenv("COLUMNS", "300")
    counted(workspace, 10, number)
    assert workspace.run("report", "--by", "hour") == 0
    _, head, _, first, second, *_ = [line for line in capsys.readouterr().out.splitlines() if line.strip()]
    column = slice(head.index("loss a") + len("loss a"), head.index("lag p50"))
    assert head[column].strip() == "loss before n, by count"
    assert (first[column].strip(), second[column].strip()) == ("0", lost)


def test_another_span_is_no_span(workspace: Workspace, capsys: Captured) -> None:
    """Exit 2 with those that there are."""
    assert workspace.run("report", "--by", "week") == 2
    told = capsys.readouterr().err
    assert "'hour'" in told
    assert "'day'" in told
