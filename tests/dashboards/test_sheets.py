"""Tests of sheets: exact numbers with units in the names of their columns, and names that run nothing."""

from __future__ import annotations

import csv
import io

import pytest

from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange, StreamsOverview, StreamSummary
from hopwatch.dashboards.views import sheets
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.sheets import Sheet
from hopwatch.monitor.results import Status, Verdict, WindowResult
from hopwatch.monitor.texts.read_progress import ReadProgress
from tests.support.dashboard_stores import without_verdict
from tests.support.windows import at, lag, window

TIMED = {
    "a": {"process_duration_p95_us": 2_000, "lag_out_us": lag(5_000)},
    "b": {"process_duration_p95_us": 6_000, "lag_in_us": lag(7_000), "lag_out_us": lag(13_000)},
}


def stretch(*steps: WindowResult) -> StreamRange:
    """Return a range of these windows of two nodes."""
    return StreamRange("orders", Graph(("a", "b"), (Edge(0, 1, is_required=True),)), steps, 60_000_000, None)


def read(sheet: Sheet) -> list[dict[str, str]]:
    """Return the rows of the file that a sheet makes."""
    return list(csv.DictReader(io.StringIO(sheet.to_csv())))


def test_what_should_have_arrived_and_did_is_a_row_a_step() -> None:
    """With the time in ISO 8601, UTC; at a node, and end to end."""
    made = stretch(window(0, lost={"b": 20}, nodes={"b": {"expected": 1_000}}))
    whole = {"start": "2026-01-01T00:00:00Z", "seen_as": "LOSSY", "node": "end to end"}
    assert read(sheets.build_arrivals(made, "")) == [whole | {"expected_messages": "1000", "arrived_messages": "980"}]
    of_b = whole | {"node": "b", "expected_messages": "1000", "arrived_messages": "980"}
    assert read(sheets.build_arrivals(made, "b")) == [of_b]


def test_lags_are_in_microseconds_and_what_is_not_stamped_is_empty() -> None:
    """All six figures, as the report has them."""
    made = stretch(window(0, nodes=TIMED))
    (row,) = read(sheets.build_lags(made, "b", "lag in"))
    assert (row["lag_in_p95_us"], row["lag_in_stamps"], row["found"]) == ("7000", "1000", "")
    (row,) = read(sheets.build_lags(made, "a", "lag in"))
    assert (row["lag_in_p95_us"], row["lag_in_stamps"]) == ("", "")


def test_durations_and_their_shares_are_of_every_node() -> None:
    """A share is a fraction of all."""
    made = stretch(window(0, nodes=TIMED))
    assert [row["process_duration_p95_us"] for row in read(sheets.build_durations(made))] == ["2000", "6000"]
    assert [row["share_ratio"] for row in read(sheets.build_shares(made.steps[0]))] == ["0.25", "0.75"]
    assert read(sheets.build_shares(None)) == []


@pytest.mark.parametrize(
    ("measure", "column", "told"),
    [
        (HeatMeasure.LOSS, "missing_ratio", ["0.02", "", ""]),
        (HeatMeasure.LOSS, "lost_lower_messages", ["20", "0", "20"]),
        (HeatMeasure.LOSS, "lost_upper_messages", ["20", "0", "20"]),
        (HeatMeasure.LAG, "lag_p95_us", ["", "5000", "13000"]),
    ],
)
def test_the_heat_map_is_a_row_a_step_and_node(measure: HeatMeasure, column: str, told: list[str]) -> None:
    """And one end to end; each with what it is seen as."""
    rows = read(sheets.build_heat(stretch(window(0, lost={"b": 20}, nodes=TIMED)), measure))
    assert [row["node"] for row in rows] == ["end to end", "a", "b"]
    assert [row["seen_as"] for row in rows] == ["LOSSY", "CLEAN", "LOSSY"]
    assert [row[column] for row in rows] == told


def test_the_pathway_is_a_row_a_node_and_a_row_an_edge() -> None:
    """The sheet has a row for each node and each edge, with the missing messages of an edge in its row."""
    made = stretch(window(0, lost={"b": 20}))
    rows = read(sheets.build_pathway(made.graph, made.steps[0]))
    assert [(row["kind"], row["node"], row["to_node"], row["missing_messages"]) for row in rows] == [
        ("node", "a", "", "0"),
        ("node", "b", "", "20"),
        ("edge", "a", "b", "20"),
    ]
    unsure = {"lost_in_transit": 20, "loss": 20, "loss_lower": 0, "loss_upper": 25}
    rows = read(sheets.build_pathway(made.graph, window(0, nodes={"b": unsure})))
    assert [(row["lost_lower_messages"], row["lost_upper_messages"]) for row in rows[1:]] == [("0", "25")] * 2
    assert {row["missing_messages"] for row in read(sheets.build_pathway(made.graph, None))} == {""}


def test_the_loss_table_has_all_figures_of_each_node() -> None:
    """Every column but names and words says its unit or what it counts."""
    sheet = sheets.build_losses(window(0, lost={"b": 20}, nodes=TIMED))
    endings = ("_messages", "_ratio", "_us", "_stamps", "_negative", "inversions")
    assert [name for name in sheet.columns if not name.endswith(endings)] == ["node", "seen_as"]
    row = read(sheet)[1]
    assert (row["missing_messages"], row["lag_out_p95_us"], row["coverage_ratio"]) == ("20", "13000", "1.0")


def test_the_overview_is_a_row_a_stream() -> None:
    """One without a final window has a name alone; what is unknown is empty."""
    blind = window(3, verdict=Verdict.UNKNOWN)
    streams = StreamSummary("a", None), StreamSummary("b", blind, first_us=at(0), last_us=at(3))
    first, second = read(sheets.build_overview(StreamsOverview(streams, ReadProgress(0, is_once=True))))
    assert [first["stream"], first["verdict"], first["known_messages"]] == ["a", "", ""]
    assert [second["verdict"], second["window_start"], second["lost_upper_messages"]] == [
        "UNKNOWN",
        "2026-01-01T00:03:00Z",
        "",
    ]


def test_what_is_not_final_says_so() -> None:
    """In every sheet of steps."""
    made = stretch(without_verdict(window(0, status=Status.PROVISIONAL)))
    assert read(sheets.build_arrivals(made, ""))[0]["seen_as"] == "PROVISIONAL"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_name_is_a_formula(name: str) -> None:
    """A spreadsheet takes it for text; numbers below 0 stay numbers."""
    ((told, number),) = list(csv.reader(io.StringIO(Sheet(("a", "b"), ((name, -5),)).to_csv(), newline="")))[1:]
    assert (told, number) == (f"'{name}", "-5")


def test_a_file_is_named_after_its_stream_and_chart() -> None:
    """The name of a file has nothing in it that a file system could misread."""
    assert sheets.build_file_name("orders", "lag-in") == "hopwatch-orders-lag-in"
    assert sheets.build_file_name("../../etc/<a b>", "loss") == "hopwatch-..-..-etc-a-b--loss"
    assert len(sheets.build_file_name("x" * 1_000, "loss")) < 100
