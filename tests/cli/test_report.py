"""Tests of ``hopwatch report``: the JSON to the digit, the table as text, exit codes, and words for wrong flags."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from hopwatch.cli.main import main
from hopwatch.monitor.results import Status
from hopwatch.monitor.store import dialect, schema, writer
from hopwatch.probes.contract.batch import BatchKind, Drop, Metrics, MetricsStamp
from tests.support.conclusions import build_conclusion, write_conclusions
from tests.support.spool import START_MS, at_us, make_batch, observation_batch, pack_lags, window_ms, write_segment
from tests.support.workspace import CONFIGURATION, Workspace, closing_batches, one_of_ten_lost

Captured = pytest.CaptureFixture[str]

IN: Final = {"min": 1_000, "p50": 1_000, "p95": 1_000, "p99": 1_000, "max": 1_000}
OUT: Final = {"min": 2_000, "p50": 2_000, "p95": 2_000, "p99": 2_000, "max": 2_000}
WINDOW: Final = {
    "window_start": "2026-01-01T00:00:00Z",
    "status": "FINAL",
    "revision": 0,
    "verdict": "LOSSY",
    "reasons": [],
    "known": 10,
    "delivered": 9,
    "filtered": 0,
    "rejected": 0,
    "lost": 1,
    "partial": 0,
    "lost_lower": 1,
    "lost_upper": 1,
    "loss_ratio": 0.1,
    "in_flight": 0,
    "recovered": 0,
    "lag_us": {"count": 9} | OUT,
}
LOOKED_AT: Final = {"samples": 10, "messages": 10, "path_messages": 9}
A: Final = {
    "node": "a",
    "expected": 10,
    "seen": 10,
    "arrived": 10,
    "departed": 10,
    "filtered": 0,
    "rejected": 0,
    "lost_in_transit": 0,
    "lost_inside": 0,
    "lost_after": 0,
    "loss": 0,
    "loss_lower": 0,
    "loss_upper": 0,
    "loss_ratio": 0.0,
    "in_flight": 0,
    "unobserved": 0,
    "orphans": 0,
    "duplicates_in": 0,
    "duplicates_out": 0,
    "lag_negative": 0,
    "dropped": 0,
    "coverage": 1.0,
    "lag_in_us": {"count": 10} | IN,
    "lag_out_us": {"count": 10} | OUT,
    "inside_us": {"count": 10} | IN,
    "process_duration_p95_us": 1_000,
    "deferred": 0,
    "inversions": 0,
    "displacement": None,
    "overdue": 0,
    "overdue_ids": [],
    "lost_ids": [],
    "slowest": [{"id": f"{number:032x}", "lag_out_us": 2_000} for number in range(5)],
    "labels": [],
    "causes": [],
    "lag_causes": [],
    "seconds": None,
    "bursts": [],
    "times": [
        {"source": source, "time_us": {"count": 10} | IN} | LOOKED_AT | {"total_us": 9_000} for source in ("", "a")
    ],
}
B: Final = A | {
    "node": "b",
    "seen": 9,
    "arrived": 9,
    "departed": 9,
    "lost_in_transit": 1,
    "loss": 1,
    "loss_lower": 1,
    "loss_upper": 1,
    "loss_ratio": 0.1,
    "lag_in_us": {"count": 9} | IN,
    "lag_out_us": {"count": 9} | OUT,
    "inside_us": {"count": 9} | IN,
    "lost_ids": ["00000000000000000000000000000009"],
    "times": [
        {"source": "a", "time_us": {"count": 9} | {name: -lag for name, lag in IN.items()}}
        | LOOKED_AT
        | {"total_us": -9_000},
        {"source": "b", "time_us": {"count": 9} | IN} | LOOKED_AT | {"total_us": 9_000},
    ],
}
ACCOUNTS: Final = {
    "records": 4,
    "batches": 4,
    "duplicate_batches": 0,
    "observations": 19,
    "too_late": 0,
    "implausible": 0,
    "set_aside": {},
}


def reported(workspace: Workspace, capsys: Captured, *flags: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what ``report --json`` writes to stdout."""
    assert workspace.run("report", "--json", *flags) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


def starts(told: Any) -> list[str]:  # noqa: ANN401 - what JSON holds
    """Return the minutes of the windows."""
    return [window["window_start"][11:16] for stream in told["streams"] for window in stream["windows"]]


# The JSON


def test_json_is_what_the_interface_says_key_by_key(workspace: Workspace, capsys: Captured) -> None:
    """Every key in its order, every figure: ten messages, the last one lost on the way to b."""
    workspace.watch(*one_of_ten_lost())
    told = reported(workspace, capsys)
    windows = [WINDOW | {"nodes": [A, B], "deferred": 0, "counts": [], "overdue": 0}]
    assert json.dumps(told) == json.dumps(
        {
            "streams": [{"stream": "orders", "windows": windows + told["streams"][0]["windows"][1:]}],
            "accounts": ACCOUNTS,
            "read_through": "2026-01-01T00:06:40Z",
        }
    )


def test_what_is_not_known_is_null(workspace: Workspace, capsys: Captured) -> None:
    """No probe was heard at b, nothing was known in the second minute: no ratio, no bound, no lag, and never 0."""
    workspace.watch(
        observation_batch([1]),
        make_batch(BatchKind.HEARTBEAT, seq=1, window_start_ms=window_ms(1), complete_through_us=at_us(90)),
    )
    first, second = reported(workspace, capsys)["streams"][0]["windows"]
    assert (first["verdict"], first["lost"], first["lost_lower"], first["nodes"][1]["coverage"]) == (
        "UNKNOWN",
        1,
        0,
        None,
    )
    assert (first["nodes"][1]["loss_upper"], first["lag_us"]) == (None, None)
    assert (second["loss_ratio"], second["lag_us"], second["lost_upper"]) == (None, None, None)
    assert {second["nodes"][0][name] for name in ("loss_ratio", "lag_in_us", "process_duration_p95_us")} == {None}


def test_accounts_say_what_became_of_every_record(workspace: Workspace, capsys: Captured) -> None:
    """Duplicate batches, implausible ones, and broken records by their reason."""
    odd = observation_batch([5], seq=2, window_start_ms=0)
    workspace.watch(
        observation_batch([1]),
        observation_batch([1]),
        odd,
        b"broken",
        replace(odd, stream="ordres"),
        arrival_us=at_us(70),
    )
    assert reported(workspace, capsys)["accounts"] == {
        "records": 5,
        "batches": 3,
        "duplicate_batches": 1,
        "observations": 3,
        "too_late": 0,
        "implausible": 1,
        "set_aside": {"bad_marker": 1, "unknown_stream": 1},
        "undeclared": [
            {
                "reason": "unknown_stream",
                "stream": "ordres",
                "node": "a",
                "probe": "probe-of-a",
                "nearest": "orders",
                "records": 1,
                "last_arrival": "2026-01-01T00:01:10Z",
                "text": (
                    "1 record names the stream 'ordres', which is not declared: did you mean 'orders'? Newest probe: "
                    "'probe-of-a' at node 'a', started 2025-12-31T23:59:50Z; the last arrived 2026-01-01T00:01:10Z"
                ),
            }
        ],
    }


@pytest.mark.parametrize(
    ("flags", "minutes"),
    [
        ([], ["00:00", "00:01", "00:02", "00:03"]),
        (["--from", "2026-01-01T00:01:00Z"], ["00:01", "00:02", "00:03"]),
        (["--to", "2026-01-01T00:02:00Z"], ["00:00", "00:01"]),
        (["--from", "2026-01-01T00:00:00.000001", "--to", "2026-01-01T00:03"], ["00:01", "00:02"]),
        (["--from", "2026-01-01T02:02:00+02:00"], ["00:02", "00:03"]),
        (["--from", "2026-01-02"], []),
        (["--to", "0001-01-01T00:00:00+14:00"], []),
    ],
)
def test_windows_that_start_in_the_range_are_reported(
    flags: list[str], minutes: list[str], workspace: Workspace, capsys: Captured
) -> None:
    """From is inclusive, to is exclusive; a time without a zone is UTC."""
    workspace.watch(observation_batch([1]), make_batch(BatchKind.HEARTBEAT, seq=1, window_start_ms=window_ms(3)))
    assert starts(reported(workspace, capsys, *flags)) == minutes


def test_only_the_named_stream_is_reported(workspace: Workspace, capsys: Captured) -> None:
    """Others stay out, the accounts are those of the whole monitor."""
    workspace.configure(workspace.config.read_text() + '[streams.trades]\npath = "a -> b"\n')
    workspace.watch(observation_batch([1]), observation_batch([2], stream="trades"))
    assert [stream["stream"] for stream in reported(workspace, capsys)["streams"]] == ["orders", "trades"]
    told = reported(workspace, capsys, "--stream", "trades")
    assert ([stream["stream"] for stream in told["streams"]], told["accounts"]["batches"]) == (["trades"], 2)


# The table


def test_a_single_window_is_drawn_as_text(workspace: Workspace, capsys: Captured) -> None:
    """Piped: plain text without colour or line drawing, one line a row, end to end below."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--to", "2026-01-01T00:01:00Z") == 0
    told, parts = capsys.readouterr(), ("p50", "p95", "p99", "max")
    where = "where the time goes: mean lag at the end of the path 2.0 ms, of 9 messages"
    assert [line.split() for line in told.out.splitlines() if line.strip("─ ")] == [
        ["orders", "2026-01-01", "00:00Z", "FINAL", "LOSSY"],
        ["a", "b"],
        ["count", "10", "9"],
        ["loss", "of", "node", "0", "1"],
        ["loss", "%", "0%", "10.0%"],
        ["lost", "in", "transit", "\u2013", "1"],
        ["coverage", "100%", "100%"],
        *(["lag", "in", part, "1.0", "ms", "1.0", "ms"] for part in parts),
        *(["lag", "out", part, "2.0", "ms", "2.0", "ms"] for part in parts),
        *(["inside", part, "1.0", "ms", "1.0", "ms"] for part in parts),
        ["process", "duration", "p95", "1.0", "ms", "1.0", "ms"],
        ["end", "to", "end:", "10", "known,", "9", "delivered,", "1", "lost", "(10.0%)"],
        ["lag", "end", "to", "end:", "p50", "2.0", "ms,", "p95", "2.0", "ms,", "p99", "2.0", "ms,", "max", "2.0", "ms"],
        ["lost", "at", "b,", "1:"],
        [f"{9:032x}"],
        ["slowest", "at", "b,", "by", "lag", "out:"],
        *(["2.0", "ms", f"{number:032x}"] for number in range(5)),
        where.split(),
        ["part", "of", "the", "path", "timed", "p50", "p95", "p99", "mean", "share"],
        ["before", "a", "10", *["1.0", "ms"] * 4, "50.0%"],
        ["inside", "a", "10", *["1.0", "ms"] * 4, "50.0%"],
        ["a", "→", "b", "9", *["-1.0", "ms"] * 4, "-50.0%"],
        ["inside", "b", "9", *["1.0", "ms"] * 4, "50.0%"],
        ["4", "records,", "19", "observations"],
        ["a", "store", "that", "was", "filled", "once,", "as", "of", "2026-01-01T00:06:40Z"],
    ]
    assert ("\x1b" in told.out, told.err) == (False, "")


def test_what_later_judgements_changed_is_shown_beside(workspace: Workspace, capsys: Captured) -> None:
    """Before and after, field by field: as text, and with every window in JSON."""
    workspace.watch(*one_of_ten_lost())
    changed = {"lost": [3, 1], "b.loss": [3, 1]}
    base = build_conclusion()
    result = replace(base.result, revision=1, status=Status.AMENDED)
    write_conclusions(dialect.create_engine(workspace.store_url), base._replace(result=result, changed=changed))
    assert workspace.run("report", "--revisions") == 0
    out = capsys.readouterr().out
    assert "orders  2026-01-01T00:00:00Z  revision 1, read up to " in out
    assert "    end to end: missing 3 → 1\n    b: missing 3 → 1\n" in out
    (window,) = reported(workspace, capsys, "--revisions")["streams"][0]["windows"]
    assert window["revisions"] == [{"revision": 1, "read_through": "2026-01-01T00:00:00Z", "changed": changed}]


GUILTY: Final = [
    observation_batch(range(40), labels={"version": "1.0"}),
    observation_batch(range(40, 80), seq=1, labels={"version": "1.1"}),
    observation_batch(range(60), "b"),
    *(make_batch(BatchKind.BYE, node, seq=2, complete_through_us=at_us(400)) for node in ("a", "b")),
]
"""Half of the messages of a new version are lost on the way to b."""


def test_a_report_names_the_likely_cause(workspace: Workspace, capsys: Captured) -> None:
    """Below the window that is printed, and in the JSON of each window."""
    workspace.watch(*GUILTY)
    (window, *_) = reported(workspace, capsys)["streams"][0]["windows"]
    cause = {"rank": 1, "label": "version", "said_at": "a", "kind": "VALUE", "value": "1.1", "is_new": False}
    assert [node["causes"] for node in window["nodes"]] == [
        [],
        [cause | {"lost": 20, "messages": 40, "other_lost": 0, "other_messages": 40}],
    ]
    assert workspace.run("report") == 0
    told = "version 1.1 at a, with 100% of 20 missing; of its messages 50.0% are missing, of all others 0%"
    assert f"likely cause at b: {told}\n" in capsys.readouterr().out
    assert (
        workspace.run("mark", "deploy a", "--label", "version=1.1", "--at", "2026-01-01T00:00:20Z", "--by", "ada") == 0
    )
    assert workspace.run("report", "--to", "2026-01-01T00:01") == 0
    assert "marked 20 s into this minute: deploy a (version=1.1), by ada\n" in capsys.readouterr().out


def test_a_report_names_the_likely_cause_of_lag(workspace: Workspace, capsys: Captured) -> None:
    """Below the window that is printed, in the JSON of each window, and beside the value in the table by label."""
    folder = workspace.folder / "spool"
    late = pack_lags(*[500_000] * 5)
    spans = [
        write_segment(
            folder / str(span) / "0000000000.seg",
            observation_batch(range(10 * span, 10 * span + 5), seq=2 * span, labels={"host": "h1"}),
            observation_batch(
                range(10 * span + 5, 10 * span + 10), seq=2 * span + 1, labels={"host": "h2"}, lag_out_us=late
            ),
            arrival_us=at_us(2 * span),
        )
        for span in range(1, 13)
    ]
    workspace.watch(*closing_batches(26, ("a",)), more=spans)
    a, _ = reported(workspace, capsys)["streams"][0]["windows"][0]["nodes"]
    figures = {"slow": 60, "departures": 60, "other_slow": 0, "other_departures": 60, "is_new": False}
    assert a["lag_causes"] == [{"rank": 1, "label": "host", "kind": "VALUE", "value": "h2"} | figures]
    to = ("--to", "2026-01-01T00:01")
    assert workspace.run("report", *to) == 0
    told = "host h2, with 100% of 60 slowest departures; of its departures 100% are so slow, of all others 0%"
    assert f"likely cause of lag at a: {told}\n" in capsys.readouterr().out
    assert workspace.run("report", "--by-label", "host", *to) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["a", "a", "h2", "60", "60", "100%"] in [[*line[:4], *line[-2:]] for line in lines]


OFFSETS: Final = np.arange(60, dtype="<u4") * 1_000_000
"""A message a second."""
OUTAGE: Final = [
    observation_batch(range(60), event_offset_us=OFFSETS.tobytes()),
    observation_batch([*range(20), *range(35, 60)], "b", event_offset_us=np.delete(OFFSETS, range(20, 35)).tobytes()),
    *(make_batch(BatchKind.BYE, node, seq=1, complete_through_us=at_us(400)) for node in ("a", "b")),
]
"""All messages of 15 seconds are lost on the way to b."""


def test_a_report_names_the_seconds_of_a_burst(workspace: Workspace, capsys: Captured) -> None:
    """In the JSON with the counts by second, and below the window that is printed, with what was marked before it."""
    workspace.watch(*OUTAGE)
    a, b = reported(workspace, capsys)["streams"][0]["windows"][0]["nodes"]
    assert (a["seconds"], a["bursts"]) == (None, [])
    assert b["seconds"] == {"messages": [1] * 60, "lost": [0] * 20 + [1] * 15 + [0] * 25}
    burst = {"start_s": 20, "end_s": 35, "lost": 15, "messages": 15, "other_lost": 0, "other_messages": 45}
    assert b["bursts"] == [burst]
    assert workspace.run("mark", "deploy b", "--at", "2025-12-31T23:59:40Z", "--by", "ada") == 0
    capsys.readouterr()
    assert workspace.run("report", "--to", "2026-01-01T00:01") == 0
    told = "100% of 15 missing; of its messages 100% are missing, of all others of the minute 0%"
    span = "00:00:20 UTC to 00:00:35 UTC"
    assert f"burst at b from {span}: {told}; it begins 40 s after deploy b\n" in capsys.readouterr().out


LABELLED: Final = [
    observation_batch(range(8), labels={"schema": "orders/1\x1b\0"}),
    observation_batch(range(8, 10), seq=1, labels={"schema": "orders/2", "host": "[bold]"}),
    observation_batch(range(9), "b", labels={"host": "h1"}),
    observation_batch([10], seq=2, window_start_ms=window_ms(1), labels={"schema": "orders/3"}),
    *(make_batch(BatchKind.BYE, node, seq=3, complete_through_us=at_us(400)) for node in ("a", "b")),
]
"""Ten messages of two schemas, of which one of the second is lost on the way to b; a third schema a minute later."""


def test_a_window_is_split_by_a_label(workspace: Workspace, capsys: Captured) -> None:
    """Losses stand beside the value that the node before said; JSON has all labels, and what is new a minute later."""
    workspace.watch(*LABELLED)
    (first, second, *_) = reported(workspace, capsys)["streams"][0]["windows"]
    rows = [row for row in first["nodes"][1]["labels"] if row["label"] == "schema"]
    figures: dict[str, Any] = {"filtered": 0, "rejected": 0, "in_flight": 0, "is_new": False}
    figures |= dict.fromkeys(("departures", "slow", "slow_dispersion"))
    assert rows == [
        {"label": "schema", "said_at": "a", "kind": "VALUE", "value": value, "expected_or_seen": messages}
        | figures
        | loss
        for value, messages, loss in (
            ("orders/2", 2, {"loss": 1, "loss_lower": 0, "loss_upper": None}),
            ("orders/1\x1b\0", 8, {"loss": 0, "loss_lower": 0, "loss_upper": None}),
        )
    ]
    assert [(row["value"], row["is_new"]) for row in second["nodes"][0]["labels"]] == [("orders/3", True)]
    to = ("--to", "2026-01-01T00:01")
    assert workspace.run("report", "--by-label", "schema", *to) == 0
    out = capsys.readouterr().out
    assert "by schema\n" in out
    lines = [line.split() for line in out.splitlines() if "orders/" in line]
    assert ["b", "a", "orders/2", "2", "0", "to", "?", "0%", "to", "?", "0", "0", "0", "\u2013", "\u2013"] in lines
    assert ["a", "a", "orders/1\\x1b\\x00", "8"] in [line[:4] for line in lines]
    assert workspace.run("report", "--by-label", "host", *to) == 0
    assert "[bold]" in capsys.readouterr().out
    assert workspace.run("report") == 0
    assert "first seen at a: schema orders/3\n" in capsys.readouterr().out


def test_a_label_that_nobody_says_is_told(workspace: Workspace, capsys: Captured) -> None:
    """With those that there are, if any."""
    workspace.watch(*LABELLED)
    assert workspace.run("report", "--by-label", "zone\0", "--to", "2026-01-01T00:01") == 0
    assert "no batch of this window has the label zone\\x00: there are host, schema\n" in capsys.readouterr().out
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--by-label", "zone", "--to", "2026-01-01T00:01") == 0
    assert "no batch of this window has the label zone: no batch has any label\n" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [("--json",), ("--by", "hour"), ("--html", "report.html")])
def test_only_a_window_that_is_printed_is_split(workspace: Workspace, capsys: Captured, flags: tuple[str, ...]) -> None:
    """With flags that print none it is refused, with what to do."""
    assert workspace.run("report", "--by-label", "schema", *flags) == 2
    told = capsys.readouterr().err
    assert "--by-label splits the window that is printed: leave --by, --html and --json out; --json has all" in told


def test_no_revision_is_told(workspace: Workspace, capsys: Captured) -> None:
    """In words, and as an empty list."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--revisions") == 0
    assert "no window in the range was judged again with another result\n" in capsys.readouterr().out
    (window,) = reported(workspace, capsys, "--revisions")["streams"][0]["windows"]
    assert window["revisions"] == []


def test_a_stream_of_which_nothing_was_read_is_told(workspace: Workspace, capsys: Captured) -> None:
    """A configured stream without a window is in every report: that nothing came is what its people have to know."""
    workspace.watch()
    assert workspace.run("report") == 0
    assert capsys.readouterr().out == (
        "stream orders: no window in the range that is shown\n\n0 records, 0 observations\n"
        "a store that was filled once\n"
    )
    assert reported(workspace, capsys)["streams"] == [{"stream": "orders", "windows": []}]
    assert reported(workspace, capsys, "--stream", "orders")["streams"] == [{"stream": "orders", "windows": []}]


def test_an_empty_store_says_so(workspace: Workspace, capsys: Captured) -> None:
    """A monitor that has not read anything yet is no error."""
    engine = dialect.create_engine(workspace.store_url)
    schema.prepare_store(engine)
    engine.dispose()
    assert workspace.run("report") == 0
    assert (
        capsys.readouterr().out == "no window yet in what was asked for\n0 records, 0 observations\n"
        "The monitor has not finished its first batch yet.\n"
    )
    assert reported(workspace, capsys)["read_through"] is None


# Up to when


@pytest.mark.parametrize("flags", [(), ("--by", "hour")])
def test_a_store_that_was_filled_once_says_as_of_when_it_is(
    flags: tuple[str, ...], workspace: Workspace, capsys: Captured
) -> None:
    """At the end, where a person at a terminal looks."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", *flags) == 0
    assert capsys.readouterr().out.endswith("\na store that was filled once, as of 2026-01-01T00:06:40Z\n")


@pytest.mark.parametrize("flags", [(), ("--by", "day")])
def test_a_monitor_that_stands_still_is_told(flags: tuple[str, ...], workspace: Workspace, capsys: Captured) -> None:
    """With the moment up to which it has read; the JSON has that alone."""
    workspace.watch(*one_of_ten_lost())
    engine = dialect.create_engine(workspace.store_url)
    with engine.execution_options(writes=True).begin() as connection:
        writer.set_values(connection, {"query_id": "a-query", "watermark_us": str(at_us(500))})
    assert workspace.run("report", *flags) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("The monitor has read nothing that came after 2026-01-01T00:08:20Z (")
    assert told.endswith("it does not run, is stuck, or has a backlog. What is shown is as of then.")
    assert reported(workspace, capsys, *flags)["read_through"] == "2026-01-01T00:08:20Z"


# Exit codes


@pytest.mark.parametrize(("ratio", "code"), [("0", 1), ("0.05", 1), ("0.099", 1), ("0.1", 0), ("0.5", 0), ("1", 0)])
def test_fail_on_loss_ends_with_1_when_more_was_lost(ratio: str, code: int, workspace: Workspace) -> None:
    """One in ten: more than the ratio is a finding, just as much is none."""
    workspace.watch(*one_of_ten_lost())
    assert workspace.run("report", "--fail-on-loss", ratio) == code
    assert workspace.run("report", "--json", "--fail-on-loss", ratio) == code
    assert workspace.run("report") == 0


def test_fail_on_loss_looks_at_the_windows_that_are_reported(workspace: Workspace) -> None:
    """Another minute's loss is nothing to this one."""
    second = [observation_batch([50], node, seq=1, window_start_ms=window_ms(1)) for node in "ab"]
    workspace.watch(observation_batch(range(10)), observation_batch(range(9), "b"), *second, *closing_batches(seq=2))
    assert workspace.run("report", "--fail-on-loss", "0", "--to", "2026-01-01T00:01Z") == 1
    assert workspace.run("report", "--fail-on-loss", "0", "--from", "2026-01-01T00:01Z") == 0


def test_what_nobody_can_know_is_held_against_nobody(workspace: Workspace, capsys: Captured) -> None:
    """With a hole in the books the missing message is no sure loss."""
    workspace.watch(observation_batch([1, 2]), observation_batch([1], "b", seq=1), *closing_batches(seq=3))
    assert workspace.run("report", "--fail-on-loss", "0") == 0
    assert workspace.run("report", "--json") == 0
    assert '"verdict": "UNKNOWN"' in capsys.readouterr().out


def test_drops_of_a_probe_are_no_sure_loss(workspace: Workspace) -> None:
    """Drops of a probe raise the upper bound of loss alone."""
    drops = (Drop(START_MS, 5, "queue full"),)
    workspace.watch(observation_batch([1], drops=drops), observation_batch([1], "b"), *closing_batches(seq=1))
    assert workspace.run("report", "--fail-on-loss", "0") == 0


@pytest.mark.parametrize(("ratio", "code"), [("0", 1), ("0.69", 1), ("0.7", 0)])
def test_what_was_surely_lost_before_a_node_that_counts_is_a_finding(
    ratio: str, code: int, workspace: Workspace
) -> None:
    """Of ten messages three were counted: seven are lost, though the ids know of none."""
    workspace.configure(CONFIGURATION.replace('"a -> b"', '"a -> n"\nstamps = { n = "count" }'))
    counted = make_batch(BatchKind.METRICS, "n", metrics=(Metrics(MetricsStamp.IN, 3),))
    workspace.watch(observation_batch(range(10)), counted, *closing_batches(seq=1, nodes=("a", "n")))
    assert workspace.run("report", "--fail-on-loss", ratio) == code


# What is said of wrong flags, and of a store that is not there


def refusal(workspace: Workspace, capsys: Captured, code: int, *flags: str) -> str:
    """Return the words on stderr of a report that is refused; nothing is written to stdout."""
    assert workspace.run("report", *flags) == code
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize("flag", ["--from", "--to"])
@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "[bold]", "1767225600", "x" * 10_000])
def test_a_time_that_is_none_is_told(flag: str, text: str, workspace: Workspace, capsys: Captured) -> None:
    """With the flag, what was got and an example."""
    workspace.watch()
    told = refusal(workspace, capsys, 2, flag, text)
    assert told == f"hopwatch: {flag} is a time such as 2026-11-21T06:40:00Z, got {text!r:.60}\n"


@pytest.mark.parametrize("name", ["ordres", "_hopwatch", "[bold]", "'; DROP TABLE windows"])
def test_a_stream_that_is_not_configured_is_told(name: str, workspace: Workspace, capsys: Captured) -> None:
    """With those that are."""
    told = refusal(workspace, capsys, 2, "--stream", name)
    assert told == f"hopwatch: --stream names {name!r}, the configuration has: orders\n"


def test_a_configuration_without_streams_is_told(workspace: Workspace, capsys: Captured) -> None:
    """There is nothing to name."""
    workspace.configure("")
    told = refusal(workspace, capsys, 2, "--stream", "orders")
    assert told == "hopwatch: --stream names 'orders', the configuration has: none\n"


@pytest.mark.parametrize(
    ("ratio", "words"),
    [("2", "this is at most 1"), ("-0.1", "this is at least 0"), ("many", "this is a number")],
)
def test_a_ratio_that_is_none_is_told(ratio: str, words: str, workspace: Workspace, capsys: Captured) -> None:
    """By the flag's name, with what is allowed."""
    told = refusal(workspace, capsys, 2, "--fail-on-loss", ratio)
    assert "Invalid value for '--fail-on-loss'" in told
    assert words in told


def test_revisions_are_of_windows_alone(workspace: Workspace, capsys: Captured) -> None:
    """An hour has none."""
    told = refusal(workspace, capsys, 2, "--revisions", "--by", "hour")
    assert told == "hopwatch: --revisions shows what changed in windows: leave --by and --html out\n"


def test_no_store_yet_is_told_with_the_command_that_makes_one(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3, and no file is made by asking."""
    assert refusal(workspace, capsys, 3) == (
        f"hopwatch: there is no store at {workspace.store_url} yet: start the monitor with hopwatch run, it makes one\n"
    )
    assert not (workspace.folder / "store.db").exists()


def test_a_store_that_is_none_is_told(workspace: Workspace, capsys: Captured) -> None:
    """Exit 3."""
    (workspace.folder / "store.db").write_text("not a database" * 100)
    assert refusal(workspace, capsys, 3) == (
        f"hopwatch: the store {workspace.store_url} failed: file is not a database; "
        "the file is another program's: name another store in [store] url\n"
    )


def test_a_configuration_that_is_wrong_is_told_with_its_line(workspace: Workspace, capsys: Captured) -> None:
    """Exit 2; the store is not looked for."""
    workspace.configure('[streams.orders]\npath = "a -> b"\ntransits = "1s"\n')
    told = refusal(workspace, capsys, 2)
    assert told.startswith(
        f"{workspace.config}:3: streams.orders.transits: there is no such key; did you mean 'transit'?"
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("report", 0),
        ("find 9", 0),
        ("outliers list", 0),
        ("schema list", 0),
        ("store migrate", 0),
        ("alerts list", 2),
        ("store prune --keep 1d", 2),
        ("doctor", 2),
    ],
)
def test_alerts_that_are_wrong_keep_only_whoever_needs_them(
    command: str, code: int, workspace: Workspace, capsys: Captured
) -> None:
    """A report is wanted most while somebody is at the rules."""
    workspace.watch(*one_of_ten_lost()).configure(CONFIGURATION + "[[alerts.rules]]\nkind = 'typo'\n")
    assert main([*command.split(), "--config", str(workspace.config)]) == code
    assert ("there is no such kind of rule as 'typo'" in capsys.readouterr().err) == (code == 2)


@pytest.mark.parametrize("command", ["report", "report --by hour", "outliers list"])
@pytest.mark.parametrize(
    ("from_time", "to_time", "what"),
    [
        ("2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z", "is after"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "is the same moment as"),
        ("2026-01-01T01:00:00Z", "2026-01-01T01:30:00+01:00", "is after"),
    ],
)
def test_a_range_in_which_nothing_can_be_is_refused(
    command: str, from_time: str, to_time: str, what: str, workspace: Workspace, capsys: Captured
) -> None:
    """By moments, whatever their zones; it is a slip, and not the answer that nothing was lost."""
    arguments = ("--config", str(workspace.config), "--from", from_time, "--to", to_time)
    assert main([*command.split(), *arguments]) == 2
    assert capsys.readouterr().err == (
        f"hopwatch: --from {from_time} {what} --to {to_time}, and nothing starts between: let --from be the earlier\n"
    )
