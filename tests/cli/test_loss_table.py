"""Tests of the table that a person reads: which rows, which columns, and every cell as text."""

from __future__ import annotations

import io
from typing import Any, Final

import pytest
from rich.console import Console

from hopwatch.cli import loss_table
from hopwatch.display import texts
from hopwatch.monitor.kernel.window import WindowPolicy
from tests.support.spool import START_US, at_us

Json = dict[str, Any]
LAG = {"count": 9, "min": 1, "p50": 2, "p95": 1_500, "p99": 2_500, "max": 3_000_000}
SHOWN = (("p50", "2 µs"), ("p95", "1.5 ms"), ("p99", "2.5 ms"), ("max", "3.0 s"))
TERMS = {"orders": WindowPolicy(150_000_000, 30_000_000, 3_600_000_000, 86_400_000_000)}


FAR: Final = {"count": 10_000, "min": 0, "p50": 0, "p95": 3, "p99": 40, "max": 1_200}
"""A displacement, in messages."""


def node(name: str, **figures: object) -> Json:
    """Return a node of the report: ten seen, nothing lost."""
    zeroes = (
        "loss",
        "filtered",
        "rejected",
        "deferred",
        "in_flight",
        "overdue",
        "unobserved",
        "orphans",
        "duplicates_in",
        "duplicates_out",
        "inversions",
    )
    figures.setdefault("lost_ids", [])
    figures.setdefault("overdue_ids", [])
    figures.setdefault("slowest", None)
    figures.setdefault("labels", [])
    figures.setdefault("causes", [])
    figures.setdefault("lag_causes", [])
    figures.setdefault("bursts", [])
    figures.setdefault("times", [])
    nulls = ("lag_in_us", "lag_out_us", "inside_us", "process_duration_p95_us", "displacement")
    hidden = ("expected", "arrived", "departed", "lag_negative")
    lost = ("lost_in_transit", "lost_inside", "lost_after")
    base: Json = dict.fromkeys((*zeroes, *lost, *hidden, "dropped"), 0) | dict.fromkeys(nulls)
    loss: Json = dict.fromkeys(("loss_lower", "loss_upper"), figures.get("loss", 0))
    return base | {"node": name, "seen": 10, "loss_ratio": 0.0, "coverage": 1.0} | loss | figures


def window(*nodes: Json, **figures: object) -> Json:
    """Return a window of the report: ten known, all delivered, CLEAN."""
    base: Json = dict.fromkeys(
        ("lost", "partial", "filtered", "rejected", "deferred", "in_flight", "overdue", "recovered"), 0
    )
    base |= dict.fromkeys(("lost_lower", "lost_upper"), figures.get("lost", 0))
    base |= {"window_start": "2026-01-01T00:00:00Z", "status": "FINAL", "verdict": "CLEAN", "reasons": []}
    base |= {"known": 10, "delivered": 10, "loss_ratio": 0.0, "lag_us": LAG}
    return base | {"nodes": list(nodes) or [node("a"), node("b")], "counts": []} | figures


def told(*windows: Json, stream: str = "orders", **accounts: object) -> Json:
    """Return the object of a report with one stream."""
    counted: Json = {"records": 3, "observations": 1_234, "duplicate_batches": 0, "too_late": 0, "implausible": 0}
    return {
        "streams": [{"stream": stream, "windows": list(windows)}],
        "accounts": counted | {"set_aside": {}} | accounts,
    }


def drawn(report: Json, *, is_terminal: bool = False, now_us: int = START_US) -> str:
    """Return what is drawn at a moment, as a command's console would draw it."""
    file = io.StringIO()
    colours = "truecolor" if is_terminal else None
    settings: Json = {"markup": False, "highlight": False, "emoji": False, "color_system": colours}
    loss_table.print_report(
        Console(file=file, width=300, force_terminal=is_terminal, **settings), report, TERMS, now_us
    )
    return file.getvalue()


def row(text: str, name: str) -> list[str]:
    """Return the cells of a row by its name."""
    (line,) = [line for line in text.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).split()


def test_a_single_window_shows_its_nodes_as_columns() -> None:
    """Count, loss of node and loss in percent below each node."""
    nodes = [node("n1"), node("n2", seen=9, loss=1, loss_ratio=0.1), node("n3", seen=1_007, loss=2_000, loss_ratio=0.2)]
    text = drawn(told(window(*nodes)))
    assert row(text, "n1") == ["n2", "n3"]
    assert row(text, "count") == ["10", "9", "1,007"]
    assert row(text, "loss of node") == ["0", "1", "2,000"]
    assert row(text, "loss %") == ["0%", "10.0%", "20.0%"]


@pytest.mark.parametrize(
    ("name", "figures", "cell"),
    [
        ("lost in transit", {"lost_in_transit": 5, "loss": 5}, "5"),
        ("lost inside", {"lost_inside": 6, "loss": 6}, "6"),
        ("lost after", {"lost_after": 7, "loss": 7}, "7"),
        ("filtered", {"filtered": 3}, "3"),
        ("rejected", {"rejected": 4}, "4"),
        ("deferred", {"deferred": 3}, "3"),
        ("in flight", {"in_flight": 5}, "5"),
        ("overdue", {"overdue": 4}, "4"),
        ("unobserved", {"unobserved": 6}, "6"),
        ("orphans", {"orphans": 7}, "7"),
        ("duplicates in", {"duplicates_in": 8}, "8"),
        ("duplicates out", {"duplicates_out": 9}, "9"),
        ("dropped by probe", {"dropped": 1_000}, "1,000"),
        *((f"lag in {part}", {"lag_in_us": LAG}, text) for part, text in SHOWN),
        *((f"lag out {part}", {"lag_out_us": LAG}, text) for part, text in SHOWN),
        *((f"inside {part}", {"inside_us": LAG}, text) for part, text in SHOWN),
        ("process duration p95", {"process_duration_p95_us": -7}, "-7 µs"),
        ("inversions", {"inversions": 12_345, "displacement": FAR}, "12,345"),
        ("inversions", {"inversions": 0, "displacement": FAR}, "0"),
        ("displacement p95", {"displacement": FAR}, "3"),
        ("displacement max", {"displacement": FAR}, "1,200"),
    ],
)
def test_a_row_is_shown_when_some_node_has_something_to_say(name: str, figures: Json, cell: str) -> None:
    """And left out when none has; a node without it shows a dash."""
    assert name not in drawn(told(window()))
    assert row(drawn(told(window(node("a", **figures), node("b")))), name) == [*cell.split(), "\u2013"]


def test_a_ratio_of_nothing_is_a_dash() -> None:
    """Not 0 %: nothing was expected there."""
    text = drawn(told(window(node("a"), node("b", seen=0, loss_ratio=None, coverage=None))))
    assert (row(text, "loss %"), row(text, "coverage")) == (["0%", "\u2013"], ["100%", "\u2013"])


def test_several_windows_are_listed_and_the_last_is_drawn() -> None:
    """One row a window with the loss of each node; below them the nodes of the newest."""
    late = window(window_start="2026-01-01T00:01:00Z", lost=1_500, loss_ratio=0.15, lag_us=None)
    text = drawn(told(window(), late))
    assert "stream orders" in text
    names = "status verdict known delivered lost lost % loss a loss b lag p95"
    assert " ".join(row(text, "window")) == names
    first, second = [line.split()[1:] for line in text.splitlines() if line.startswith(" 2026")]
    assert first == ["00:00Z", "FINAL", "CLEAN", "10", "10", "0", "0%", "0", "0", "1.5", "ms"]
    assert second == ["00:01Z", "FINAL", "CLEAN", "10", "10", "1,500", "15.0%", "0", "0", "\u2013"]
    assert "orders  2026-01-01 00:01Z  FINAL  CLEAN" in text
    assert "orders  2026-01-01 00:00Z" not in text


def test_what_is_still_coming_in_is_listed_and_not_drawn() -> None:
    """A window that is still open is listed, and the newest judged window is drawn."""
    lossy = window(verdict="LOSSY", lost=3, loss_ratio=0.3)
    coming = window(window_start="2026-01-01T00:01:00Z", status="OPEN", verdict=None, known=4, delivered=2)
    text = drawn(told(lossy, coming))
    assert "orders  2026-01-01 00:00Z  FINAL  LOSSY" in text
    assert "orders  2026-01-01 00:01Z" not in text
    assert "orders  2026-01-01 00:01Z  OPEN" in drawn(told(coming))


def test_a_minute_in_which_nothing_happened_is_listed_and_not_drawn() -> None:
    """The last window with messages is drawn; one without is drawn if there is no other."""
    idle = window(known=0, delivered=0, verdict="IDLE", window_start="2026-01-01T00:01:00Z")
    assert "orders  2026-01-01 00:00Z  FINAL  CLEAN" in drawn(told(window(), idle))
    assert "orders  2026-01-01 00:01Z  FINAL  IDLE" in drawn(told(idle))


def test_a_stream_without_windows_is_told() -> None:
    """A configured stream of which nothing was read, or a range of time in which nothing was."""
    assert drawn(told()).startswith("stream orders: no window in the range that is shown\n\n")


def test_a_window_that_is_open_has_no_verdict() -> None:
    """Its messages are in flight."""
    text = drawn(told(window(status="OPEN", verdict=None, in_flight=4)))
    assert "orders  2026-01-01 00:00Z  OPEN" in text
    assert "end to end: 10 known, 10 delivered, 4 in flight, 0 lost (0%)" in text


@pytest.mark.parametrize("status", ["OPEN", "PROVISIONAL"])
def test_a_window_that_is_not_final_says_when_it_is(status: str) -> None:
    """By the terms of its stream: a minute, transit and settle after its start; in the list as well."""
    coming = window(status=status, verdict=None)
    assert f"orders  2026-01-01 00:00Z  {status}, final at 00:04:00Z" in drawn(told(coming))
    listed = drawn(told(coming, window(window_start="2026-01-02T00:00:00Z")))
    assert row(listed, "2026-01-01")[:5] == ["00:00Z", f"{status},", "final", "at", "00:04:00Z"]
    assert "final at" not in drawn(told(window(), window(status="AMENDED")))


def test_a_moment_that_is_past_is_promised_to_nobody() -> None:
    """The monitor stands still, or is behind: a window that is not final by then is so at a moment nobody knows."""
    coming = told(window(status="OPEN", verdict=None))
    assert "OPEN, final at 00:04:00Z" in drawn(coming, now_us=at_us(239))
    assert "final at" not in drawn(coming, now_us=at_us(240))


def test_a_window_of_no_stream_that_is_configured_or_of_no_year_says_no_time() -> None:
    """A window without a configured stream or a valid year has no time at which it is final."""
    assert "final at" not in drawn(told(window(status="OPEN"), stream="gone"))
    assert "final at" not in drawn(told(window(status="OPEN", window_start="253402300800000000 µs since 1970")))
    assert "final at" not in drawn(told(window(status="OPEN", window_start="9999-12-31T23:59:00Z")))


def test_five_lost_ids_of_a_node_are_told() -> None:
    """Each on a line, with how many there are; none of a node that lost none."""
    ids = [f"order-{number}" for number in range(100)]
    text = drawn(told(window(node("a"), node("b", loss=23_528, lost_ids=ids), node("c", loss=2, lost_ids=ids[:2]))))
    first, others = text.partition("lost at b, 5 of 23,528:\n")[2].split("lost at c, 2:\n")
    assert first.split() == ids[:5]
    assert others.splitlines()[:3] == ["    order-0", "    order-1", ""]
    assert "lost at a" not in text


def test_five_overdue_ids_of_a_node_are_told() -> None:
    """Ids of what is overdue are not called lost, and stand beside how many are overdue for sure."""
    at_b = node("b", overdue=2, in_flight=9, overdue_ids=[f"order-{number}" for number in range(7)])
    text = drawn(told(window(node("a"), at_b, status="OPEN", verdict=None, overdue=2, in_flight=9)))
    head, _, listed = text.partition("overdue at b, 2 for sure, among these the first:\n")
    assert listed.splitlines()[:6] == [*(f"    order-{number}" for number in range(5)), ""]
    assert "lost at" not in head
    assert "overdue at a" not in text


def test_ids_of_what_is_not_known_to_be_lost_are_missing() -> None:
    """Ids of a node whose loss is not sure are shown as missing, and without ids there is no line."""
    unsure = node("b", loss=7, loss_lower=0, loss_upper=None, lost_ids=["x"])
    text = drawn(told(window(node("a", loss=3), unsure, verdict="UNKNOWN")))
    assert "missing at b, 1 of 7:\n    x\n" in text
    assert "at a" not in text


def lags(out_us: int, inside_us: int, *slowest: str) -> Json:
    """Return the figures of a node with so much lag out and time inside at most, and its slowest messages."""
    ids = [{"id": message_id, "lag_out_us": out_us >> place} for place, message_id in enumerate(slowest)]
    return {"lag_out_us": LAG | {"max": out_us}, "inside_us": LAG | {"max": inside_us}, "slowest": ids}


def test_slowest_messages_are_told_where_it_took_longest() -> None:
    """At the node that one left latest, and at that which held one longest; each with its lag, which stands first."""
    text = drawn(told(window(
        node("a", **lags(1_000, 10, "x")),
        node("b", **lags(5_000_000, 4_000_000, "y", "z")),
        node("c", **lags(6_000_000, 10, *"12345")),
        node("d", **lags(5_500_000, 10, "v")),
    )))  # fmt: skip
    first, second = text.partition("slowest at b, by lag out:\n")[2].split("slowest at c, by lag out:\n")
    assert first.splitlines() == ["    5.0 s  y", "    2.5 s  z"]
    lines = ["       6.0 s  1", "       3.0 s  2", "       1.5 s  3", "    750.0 ms  4", "    375.0 ms  5", ""]
    assert second.splitlines()[:6] == lines
    assert "slowest at a" not in text
    assert "slowest at d" not in text


def test_slowest_messages_of_equal_nodes_are_those_of_the_last() -> None:
    """The slowest messages of equal nodes are shown once, for the last; without kept messages nothing is shown."""
    text = drawn(told(window(node("a", **lags(7, 3, "x")), node("b", **lags(7, 3, "y")))))
    assert text.count("slowest at") == text.count("slowest at b, by lag out:\n    7 µs  y\n") == 1
    assert "slowest" not in drawn(told(window(node("a", **lags(7, 3)), node("b", lag_out_us=LAG, inside_us=LAG))))
    assert "slowest at b" in drawn(told(window(node("a"), node("b", **(lags(7, 3, "y") | {"inside_us": None})))))


def test_end_to_end_lag_is_told_by_its_quantiles() -> None:
    """Half, 95 and 99 of 100, and the slowest; not of a window without one."""
    assert "lag end to end: p50 2 µs, p95 1.5 ms, p99 2.5 ms, max 3.0 s\n" in drawn(told(window()))
    assert "lag end to end" not in drawn(told(window(lag_us=None)))


def test_end_to_end_adds_up_in_words() -> None:
    """Messages that were stopped stand between those delivered and those lost; zeroes are left out."""
    text = drawn(told(window(known=1_010, filtered=1, rejected=2, in_flight=3, recovered=4, lost=5, loss_ratio=None)))
    assert "delivered, 8 deferred, 8 in flight, 0 lost" in drawn(told(window(known=1_008, deferred=8, in_flight=8)))
    counts = "10 delivered, 1 filtered, 2 rejected, 3 in flight, 4 recovered, 5 lost (\u2013)"
    assert f"end to end: 1,010 known, {counts}" in text


@pytest.mark.parametrize(("upper", "words"), [(9_000, "at most 9,000"), (None, "at most ?")])
def test_unknown_shows_its_bounds(upper: int | None, words: str) -> None:
    """Neither as good nor as loss; a bound that nobody knows is a question mark."""
    text = drawn(told(window(verdict="UNKNOWN", lost_lower=2, lost_upper=upper)))
    assert f"surely lost: 2, {words}" in text
    assert "surely lost" not in drawn(told(window(verdict="LOSSY", lost_lower=2, lost_upper=upper)))


BOUNDS: dict[str, tuple[int, int | None, str, str, str]] = {
    "nothing is sure": (0, 50, "0 to 50", "0 to 50 lost (0% to 100%), unknown; 50 missing", "0% to 100%"),
    "nobody knows how many": (0, None, "0 to ?", "0 to ? lost (0% to ?), unknown; 50 missing", "0% to ?"),
    "some are sure": (12, 50, "12 to 50", "12 to 50 lost (24.0% to 100%); 50 missing", "24.0% to 100%"),
    "all are": (50, 50, "50", "50 lost (100%)", "100%"),
}


@pytest.mark.parametrize(("lower", "upper", "loss", "ends", "share"), BOUNDS.values(), ids=BOUNDS)
def test_what_is_missing_is_told_by_its_bounds(lower: int, upper: int | None, loss: str, ends: str, share: str) -> None:
    """In the list, in the table of nodes and end to end; what is surely lost alone is a plain number."""
    of_b: Json = {"loss": 50, "lost_in_transit": 50, "loss_lower": lower, "loss_upper": upper, "loss_ratio": 1.0}
    of_all: Json = {"lost": 50, "lost_lower": lower, "lost_upper": upper, "loss_ratio": 1.0, "delivered": 0}
    one = window(node("a"), node("b", **of_b), known=50, verdict="UNKNOWN" if not lower else "LOSSY", **of_all)
    text = drawn(told(one))
    assert f"end to end: 50 known, 0 delivered, {ends}\n" in text
    for name, cell in (("loss of node", loss), ("lost in transit", loss), ("loss %", share)):
        assert row(text, name)[1:] == cell.split()
    assert ("missing  " in text) is (lower != 50)
    listed = drawn(told(one, one)).splitlines()
    cells = [line.split("  ") for line in listed if line.startswith(" 2026")]
    assert [sum(cell.strip() == loss for cell in line) for line in cells] == ([2, 2] if lower != 50 else [3, 3])


@pytest.mark.parametrize(
    ("lower", "ends"),
    [(12, "12 lost (24.0%), 5 of"), (0, "0 to 12 lost (0% to 24.0%), unknown; 12 missing, 5 of")],
)
def test_what_was_delivered_elsewhere_stands_beside_the_loss(lower: int, ends: str) -> None:
    """Of what is lost, or of what is missing where that is not known."""
    text = drawn(told(window(known=50, lost=12, lost_lower=lower, loss_ratio=0.24, partial=5)))
    assert f"{ends} them delivered elsewhere\n" in text


def test_the_first_reasons_are_told() -> None:
    """Three of them, and how many more there are: a person reads no more."""
    text = drawn(told(window(verdict="UNKNOWN", reasons=["one", "two", "three", "four"])))
    said = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    assert said[-4:] == ["one", "two", "three", "and 1 more, which --json shows"]
    assert "four" not in text


@pytest.mark.parametrize("width", [20, 60, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(width: int) -> None:
    """Lines are folded by the terminal instead, in the list of windows and in the detail of one."""
    big = window(node("a", seen=123_456_789), known=123_456_789, delivered=123_456_780)
    out = io.StringIO()
    loss_table.print_report(
        Console(file=out, width=width, force_terminal=True, color_system=None), told(big, big), TERMS, START_US
    )
    assert "…" not in out.getvalue()
    assert out.getvalue().count("123,456,789") == 4


def test_the_accounts_name_what_is_odd() -> None:
    """Duplicates, what came too late, what was implausible, what was set aside and why; zeroes are left out."""
    odd: Json = {
        "duplicate_batches": 2,
        "too_late": 3,
        "implausible": 1_000,
        "set_aside": {"bad_crc": 4, "torn_tail": 5},
    }
    assert drawn(told(window(), **odd)).splitlines()[-1] == (
        "3 records, 1,234 observations; 2 duplicate batches; 3 too late; 1,000 implausible; "
        "4 set aside as bad_crc; 5 set aside as torn_tail"
    )
    assert drawn(told(window())).splitlines()[-1] == "3 records, 1,234 observations"


def test_the_accounts_name_what_is_not_declared() -> None:
    """Five names, a line each, and how many more there are."""
    names = [{"text": f"1 record of 'orders' names the node 'n{number}'"} for number in range(7)]
    assert drawn(told(window(), undeclared=names)).splitlines()[-6:] == [
        *(f"  1 record of 'orders' names the node 'n{number}'" for number in range(5)),
        "  and 2 more names, which --json shows",
    ]


@pytest.mark.parametrize(
    "name", ["[bold]x[/bold]", "<img src=x onerror=alert(1)>", ":smile:", "'; DROP TABLE x", "[/]"]
)
@pytest.mark.parametrize("is_terminal", [False, True])
def test_names_are_text_whatever_they_look_like(name: str, is_terminal: bool) -> None:  # noqa: FBT001 - a case
    """In the title, the heads of columns and the reasons, on a terminal too."""
    one = drawn(told(window(node(name), reasons=[name]), stream=name), is_terminal=is_terminal)
    assert one.count(name) == 3
    two = drawn(told(window(node(name)), window(node(name)), stream=name), is_terminal=is_terminal)
    assert two.count(name) == 4


@pytest.mark.parametrize("verdict", loss_table.COLOURS)
def test_a_verdict_has_its_colour_on_a_terminal_alone(verdict: str) -> None:
    """Piped, no escape code is written."""
    assert "\x1b[" in drawn(told(window(verdict=verdict)), is_terminal=True)
    assert "\x1b" not in drawn(told(window(verdict=verdict)))


@pytest.mark.parametrize(
    ("lag_us", "text"),
    [
        (None, "\u2013"),
        (0, "0 µs"),
        (999, "999 µs"),
        (-999, "-999 µs"),
        (1_000, "1.0 ms"),
        (-1_500, "-1.5 ms"),
        (999_949, "999.9 ms"),
        (1_000_000, "1.0 s"),
        (119_900_000, "119.9 s"),
        (120_000_000, "2.0 min"),
        (86_400_000_000_000, "1,000.0 d"),
        (-(2**63), "-106,751,991.2 d"),
    ],
)
def test_a_lag_is_told_in_the_unit_that_a_person_would_choose(lag_us: int | None, text: str) -> None:
    """Negative ones too: they are reported as they are."""
    assert texts.format_lag(lag_us) == text
