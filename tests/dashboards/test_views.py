"""Tests of what is shown: tables of what was read, and the words, figures and marks that come of it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pathway as drawn
from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange, StreamsOverview, StreamSummary, WindowSummary
from hopwatch.dashboards.views import conservation, freshness, overview, pathway, series
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.display import colours, loss_table, texts
from hopwatch.display.colours import DARK, LIGHT, Palette, compute_contrast
from hopwatch.monitor.results import Quantiles, RollUp, Status, Verdict, WindowResult
from hopwatch.monitor.texts.read_progress import ReadProgress
from tests.support.dashboard_stores import without_verdict
from tests.support.windows import at, lag, window

MINUTE_US = 60_000_000


def rolled_up(start_us: int, windows: int) -> RollUp:
    """Return an hour of so many final windows, in which nothing else is."""
    told: dict[str, Any] = dict.fromkeys((one.name for one in fields(RollUp)), 0)
    return RollUp(**told | {"start_us": start_us, "windows": windows, "nodes": (), "lag_us": None})


def stretch(*steps: WindowResult) -> StreamRange:
    """Return a range of these windows of two nodes."""
    return StreamRange("orders", Graph(("a", "b"), (Edge(0, 1, is_required=True),)), steps, MINUTE_US, None)


# Texts


@pytest.mark.parametrize(
    ("part", "whole", "ppm", "percent"),
    [
        (0, 0, texts.NONE, texts.NONE),
        (0, 10, "0 ppm", "0%"),
        (10, 10, "1,000,000 ppm", "100%"),
        (1, 3, "333,333 ppm", "33.3%"),
        (2, 100, "20,000 ppm", "2.00%"),
        (1, 10_000, "100 ppm", "0.0100%"),
        (1, 1_000_000_000, "0.001 ppm", "1e-07%"),
        (999_999, 1_000_000, "999,999 ppm", "99.99%"),
    ],
)
def test_parts_are_told_in_ppm_and_per_cent(part: int, whole: int, ppm: str, percent: str) -> None:
    """With figures enough to tell some from none, and not all from all."""
    assert (texts.format_ppm(part, whole), texts.format_percent(part, whole)) == (ppm, percent)


@pytest.mark.parametrize(
    ("lag_us", "told"),
    [
        (None, texts.NONE),
        (0, "0 µs"),
        (-1_500, "-1.5 ms"),
        (999, "999 µs"),
        (2_500_000, "2.5 s"),
        (7_199_000_000, "2.0 h"),
        (7_200_000_000, "2.0 h"),
        (28_094_544_000_000, "325.2 d"),
    ],
)
def test_a_lag_is_told_in_the_unit_that_a_person_would_choose(lag_us: int | None, told: str) -> None:
    """Negative ones too, as they are."""
    assert texts.format_lag(lag_us) == told


@pytest.mark.parametrize(
    ("for_us", "told"),
    [
        (-5, "0 s"),
        (59_000_000, "59 s"),
        (61_000_000, "1 min 1 s"),
        (3_600_000_000, "1 h 0 min"),
        (90_000_000_000, "1 d 1 h"),
    ],
)
def test_an_age_is_told_in_two_units(for_us: int, told: str) -> None:
    """The greatest that it has; what is ahead of the clock is no older than now."""
    assert texts.format_age(for_us) == told


def test_a_moment_is_told_in_its_zone() -> None:
    """With the name of the zone beside it; a broken clock's moment is a number."""
    assert texts.format_moment(at(0), UTC) == "2026-01-01 00:00 UTC"
    assert texts.format_moment(at(0), ZoneInfo("Europe/Berlin")) == "2026-01-01 01:00 CET"
    assert texts.format_moment(2**62, UTC) == f"{2**62} µs since 1970"


# Colours


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_every_colour_of_text_stands_out_from_its_ground(palette: Palette) -> None:
    """By 4.5 at least, which WCAG calls AA, on the page and on what is raised from it."""
    written = ("text", "muted", "link", "lossy", "clean", "unknown", "silent", "idle", "pending")
    assert {field.name for field in fields(Palette)} >= set(written)
    for name, ground in product(written, (palette.ground, palette.raised)):
        assert compute_contrast(getattr(palette, name), ground) >= 4.5, name
    assert all(compute_contrast(colour, palette.ground) >= 3 for colour in palette.series)


def test_verdicts_differ_by_word_and_icon() -> None:
    """Each verdict has a word and an icon of its own."""
    marks = [colours.select_mark(verdict) for verdict in Verdict]
    assert len({one.word for one in marks}) == len({one.icon for one in marks}) == len(Verdict)
    assert [one.word for one in marks] == [verdict.value for verdict in Verdict]
    assert colours.select_mark(None, Status.PROVISIONAL).word == "PROVISIONAL"
    assert compute_contrast("#000000", "#ffffff") == pytest.approx(21)


# Freshness


@pytest.mark.parametrize(
    ("behind_s", "trouble", "told"),
    [
        (20, "", []),
        (90, "", [(False, "The monitor is 1 min 30 s behind the clock: it is slow, or has just stopped.")]),
        (400, "", [(True, "The monitor has read nothing that came after 2026-01-01 01:53:20 CET (6 min 40 s ago)")]),
        (20, "it is gone", [(True, "The store cannot be read: it is gone. The page shows data of 7 s ago.")]),
    ],
)
def test_a_banner_says_what_is_wrong(behind_s: int, trouble: str, told: list[tuple[bool, str]]) -> None:
    """Nothing while all is well."""
    now_us = at(60)
    reached = ReadProgress(now_us - behind_s * 1_000_000)
    found = freshness.build_notices(now_us, now_us - 7_000_000, reached, trouble, ZoneInfo("Europe/Berlin"))
    assert [one.is_grave for one in found] == [grave for grave, _ in told]
    assert all(one.words.startswith(words) for one, (_, words) in zip(found, told, strict=True))


def test_a_banner_says_of_a_change_that_is_not_in_force() -> None:
    """Beside what is said of the monitor, and without it."""
    for stopped_us in (None, at(12)):
        reached = ReadProgress(at(60), stopped_us=stopped_us, config_problem="hopwatch.toml:1: no path")
        found = freshness.build_notices(at(60), at(60), reached, "", UTC)
        told = "The last change of the monitor's configuration is not in force: hopwatch.toml:1: no path"
        assert (found[-1].words, found[-1].is_grave) == (told, False)
        assert len(found) == 1 + (stopped_us is not None)


def test_a_store_that_was_filled_once_is_never_behind() -> None:
    """Nothing moves its watermark."""
    once = ReadProgress(at(12), is_once=True)
    assert freshness.build_notices(at(60), at(60), once, "", UTC) == ()
    told = "read 0 s ago · a store that was filled once, as of 2026-01-01 00:12:00 UTC"
    assert freshness.format_freshness(at(60), at(60), once, UTC) == told


def test_a_monitor_that_was_stopped_is_not_said_to_lag() -> None:
    """The banner has the moment; the line says what it is."""
    stopped = ReadProgress(at(12), stopped_us=at(12))
    (found,) = freshness.build_notices(at(60), at(60), stopped, "", UTC)
    assert found.words.startswith("The monitor was stopped at 2026-01-01 00:12:00 UTC (48 min 0 s ago).")
    assert freshness.format_freshness(at(60), at(60), stopped, UTC) == "read 0 s ago · monitor stopped"


# The overview


def row(newest: WindowResult | None, **fields: object) -> overview.StreamRow:
    """Return the row of one stream, seen at minute 12."""
    first = {"first_us": at(0), "last_us": at(9)} | fields
    standing = StreamsOverview((StreamSummary("orders", newest, **first),), ReadProgress(at(12)))  # type: ignore[arg-type]  # as it is given
    (only,) = overview.build_rows(standing, at(12))
    return only


@pytest.mark.parametrize(
    ("newest", "told"),
    [
        (window(9), ("CLEAN", "0 ppm", "0%", "")),
        (window(9, lost={"b": 20}), ("LOSSY", "20,000 ppm", "2.00%", "")),
        (window(9, lost={"b": 20}, lost_upper=30), ("LOSSY", "≥ 20,000 ppm", "≥ 2.00%", "at most 3.00%")),
        (window(9, lost={"b": 20}, lost_upper=None), ("LOSSY", "≥ 20,000 ppm", "≥ 2.00%", "no upper bound")),
        (window(9, verdict=Verdict.UNKNOWN), ("UNKNOWN", "?", "unknown", "no upper bound")),
        (window(9, known=0, verdict=Verdict.SILENT), ("SILENT", "?", "unknown", "no upper bound")),
        (window(9, known=0), ("IDLE", texts.NONE, texts.NONE, "")),
    ],
)
def test_a_row_tells_loss_by_its_lower_bound(newest: WindowResult, told: tuple[str, ...]) -> None:
    """A row has the lower bound of loss, or unknown, with a note of what may be more."""
    shown = row(newest)
    assert (shown.mark.word, shown.loss_ppm, shown.loss_percent, shown.loss_note) == told


def test_a_row_tells_lag_rate_coverage_and_age() -> None:
    """Each with its unit; coverage is that of the node that has least."""
    partly = window(9, nodes={"b": {"coverage": 0.5}}, lag_us=lag(1_500_000))
    shown = row(partly)
    assert (shown.lag, shown.rate, shown.age) == ("1.5 s", "1,000 /min", "2 min 0 s")
    assert (shown.coverage, shown.coverage_note) == ("50.0%", "1 of 2 nodes not complete")
    assert not shown.is_old
    assert row(replace(partly, window_start_us=at(0))).is_old


def test_one_that_was_well_long_ago_comes_before_those_that_are() -> None:
    """And behind those that are not; by the watermark, so in a store that was filled once nothing is old."""
    newest = {
        "a-well": window(29),
        "b-gone": window(0),
        "c-lossy": window(29, lost={"b": 20}),
        "d-lossy-gone": window(0, lost={"b": 20}),
        "e-idle-gone": window(0, known=0),
    }
    found = tuple(StreamSummary(name, one, first_us=at(0), last_us=one.window_start_us) for name, one in newest.items())
    shown = [one.stream for one in overview.build_rows(StreamsOverview(found, ReadProgress(at(30))), at(30))]
    assert shown == ["c-lossy", "d-lossy-gone", "b-gone", "e-idle-gone", "a-well"]
    once = [
        one.stream for one in overview.build_rows(StreamsOverview(found, ReadProgress(at(9), is_once=True)), at(30))
    ]
    assert once == ["c-lossy", "d-lossy-gone", "a-well", "b-gone", "e-idle-gone"]


def test_why_nobody_knows_stands_at_the_verdict() -> None:
    """Of a stream as it stands, and of the newest window of a range that nothing can be shown of."""
    blind = window(1, verdict=Verdict.UNKNOWN, reasons=("b: a hole", "a: another"))
    assert row(blind).reasons == blind.reasons
    told = markup.first_reason(blind.reasons)
    assert ">b: a hole and 1 more<" in told
    assert 'title="b: a hole; a: another"' in told
    assert (markup.first_reason(()), row(None).reasons) == ("", ())
    made = stretch(window(0, verdict=Verdict.SILENT), blind, window(2))
    assert series.find_newest_unknown(made) == blind
    assert series.find_newest_unknown(stretch(window(0))) is None


def test_nothing_surely_lost_end_to_end_is_not_loud_because_a_node_lost() -> None:
    """The loss end to end is unknown if its lower bound is 0, though a node is LOSSY."""
    surely = {"b": {"loss": 5, "loss_lower": 5, "loss_upper": 5}}
    one = replace(window(0, verdict=Verdict.LOSSY, nodes=surely), lost=5, lost_lower=0, lost_upper=5)
    assert overview.format_loss(one) == (texts.UNKNOWN, "unknown", "at most 0.50%")


def test_a_stream_of_which_nothing_is_final_has_no_figures() -> None:
    """A stream without a final window has no figures, and a note that says what it waits for."""
    assert row(None).loss_note == "no window is final yet"
    assert row(None, last_us=None).loss_note == "nothing came yet"
    assert {row(None).loss_ppm, row(None).lag, row(None).coverage} == {texts.NONE}


# A stream


def test_the_loss_table_is_that_of_the_talk() -> None:
    """Nodes as columns; rows that say nothing of any node are left out."""
    table = loss_table.build_loss_table(window(0, known=10, lost={"b": 1}))
    lines = {line.name: [cell.text for cell in line.cells] for line in table.rows}
    assert table.nodes == ("a", "b")
    assert (lines["count"], lines["loss of node"]) == (["10", "9"], ["0", "1"])
    assert "orphans" not in lines
    assert [one.word for one in table.marks] == ["CLEAN", "LOSSY"]


def test_a_window_that_is_not_final_has_lost_nothing_yet() -> None:
    """A window that is not final has messages in flight, and no bounds of loss."""
    told = dict(loss_table.build_figures(without_verdict(window(0, status=Status.OPEN, in_flight=7))))
    assert told["in flight"] == "7"
    assert not {"lost end to end", "surely lost", "at most"} & set(told)


def test_overdue_messages_are_shown_beside_those_in_flight() -> None:
    """Overdue messages have a figure, a row of nodes and a note where there are any; a final window has none."""
    at_b = {"b": {"overdue": 3, "in_flight": 7}}
    early = without_verdict(window(0, status=Status.OPEN, nodes=at_b, in_flight=7, overdue=3))
    lines = {line.name: line.cells for line in loss_table.build_loss_table(early).rows}
    assert dict(loss_table.build_figures(early))["overdue"] == "3"
    assert [(cell.text, cell.is_bad) for cell in lines["overdue"]] == [(texts.NONE, False), ("3", True)]
    notes = conservation.build_conservation(early).notes
    assert ("overdue", "3 of those in flight are missing beyond a deadline, for sure") in notes
    assert "overdue" not in {line.name for line in loss_table.build_loss_table(window(0)).rows}


def test_no_loss_that_is_seen_is_unknown_where_more_may_be_lost() -> None:
    """A loss of UNKNOWN windows is shown as unknown, never as 0, with its bounds beside it."""
    blind = window(0, verdict=Verdict.UNKNOWN)
    told = dict(loss_table.build_figures(blind))
    assert (told["lost end to end"], told["of known"]) == ("?, unknown", "?")
    assert (told["surely lost"], told["at most"]) == ("0", "?")
    lines = {line.name: [cell.text for cell in line.cells] for line in loss_table.build_loss_table(blind).rows}
    assert lines["loss of node"] == lines["loss %"] == ["?", "?"]


@given(st.integers(1, 60), st.integers(1, 3))
def test_a_long_chain_is_folded_and_no_node_hides_another(length: int, wide: int) -> None:
    """Each node has a place of its own, and the next column is beside or below it; with branches none is folded."""
    names = tuple(f"n{place}" for place in range(length * wide))
    edges = tuple(
        Edge(place * wide, (place + 1) * wide + other, is_required=True)
        for place in range(length - 1)
        for other in range(wide)
    )
    drawing = pathway.build_drawing(Graph(names, edges), None)
    places = [(node.column, node.row) for node in drawing.nodes]
    assert len(set(places)) == len(names)
    assert drawing.is_close is (length > pathway.MAX_COLUMNS)
    longest = max(pathway.MAX_COLUMNS, pathway.MAX_CLOSE_COLUMNS) if wide == 1 else length
    assert drawing.columns == min(length, longest)
    assert wide == 1 or [node.column for node in drawing.nodes] == [place // wide for place in range(length * wide)]
    assert all(abs(places[one.source][0] - places[one.target][0]) <= 1 for one in drawing.arrows)
    rows = [row for _, row in places]
    assert min(rows) == -max(rows)


def test_edges_are_loud_where_messages_were_lost() -> None:
    """On the way to a node of a must edge; what was lost on one of several ways stands once, where they begin."""
    graph = Graph(("a", "b"), (Edge(0, 1, is_required=True),))
    (arrow,) = pathway.build_drawing(graph, window(0, lost={"b": 1_200}, known=5_000)).arrows
    assert (arrow.missing, arrow.surely_lost, arrow.description) == (1_200, 1_200, "1,200 lost on the way to b")
    ways = Graph(("a", "b", "c"), (Edge(0, 1, is_required=False), Edge(0, 2, is_required=False)))
    losses = {"lost_after": 3, "loss": 3, "loss_lower": 0, "loss_upper": 4}
    one = window(0, names=("a", "b", "c"), nodes={"a": losses})
    drawing = pathway.build_drawing(ways, one)
    assert [(way.missing, way.label, way.description) for way in drawing.arrows] == [(0, "", "")] * 2
    assert [node.after for node in drawing.nodes] == ["0 to 4 lost after it, unknown", "", ""]
    assert "0 to 4 lost after it, unknown; b:" in drawing.description
    chart = drawn.build_options(drawing, LIGHT, "")["series"][0]
    assert str(chart["data"]).count("lost after it") == 1
    assert "lost" not in str(chart["links"])


UNSURE: dict[str, tuple[int, int | None, str, str, str]] = {
    "nothing is sure": (0, 50, "0 to 50", "0 to 50, unknown", "0% to 100%"),
    "and nobody knows how many": (0, None, "0 to ?", "0 to ?, unknown", "0% to ?"),
    "some are sure": (12, 50, "12 to 50", "12 to 50", "24.0% to 100%"),
}


@pytest.mark.parametrize(("lower", "upper", "told", "with_word", "share"), UNSURE.values(), ids=UNSURE)
def test_what_is_missing_is_shown_by_its_bounds(
    lower: int, upper: int | None, told: str, with_word: str, share: str
) -> None:
    """In figures, table, pathway and over time: a colour of loss stands for what is surely lost alone."""
    of_b = {"lost_in_transit": 50, "loss": 50, "loss_lower": lower, "loss_upper": upper, "loss_ratio": 1.0}
    verdict = Verdict.LOSSY if lower else Verdict.UNKNOWN
    ends: dict[str, Any] = {"lost": 50, "lost_lower": lower, "lost_upper": upper, "loss_ratio": 1.0, "delivered": 0}
    one = replace(window(0, known=50, verdict=verdict, nodes={"b": of_b | {"seen": 0}}), **ends)
    figures = dict(loss_table.build_figures(one))
    assert (figures["lost end to end"], figures["of known"], figures["missing"]) == (with_word, share, "50")
    lines = {line.name: line.cells[1] for line in loss_table.build_loss_table(one).rows}
    assert lines["loss of node"] == loss_table.LossCell(told, is_bad=lower > 0)
    assert lines["loss %"] == loss_table.LossCell(share, is_bad=lower > 0)
    assert lines["missing"] == loss_table.LossCell("50")
    drawing = pathway.build_drawing(Graph(("a", "b"), (Edge(0, 1, is_required=True),)), one)
    (arrow,) = drawing.arrows
    assert (arrow.missing, arrow.surely_lost, arrow.label) == (50, lower, f"{told}{' lost' if lower else ', unknown'}")
    assert drawing.nodes[1].loss == f"{told} lost ({share})"
    for palette in (LIGHT, DARK):
        chart = drawn.build_options(drawing, palette, "")["series"][0]
        assert chart["links"][0]["lineStyle"]["color"] == (palette.lossy if lower else palette.unknown)
        assert (palette.lossy in str(chart)) is (lower > 0)
    (cell,) = [cell for cell in series.build_heat_cells(stretch(one), HeatMeasure.LOSS, UTC) if cell.row == "b"]
    assert (cell.value, cell.text) == ((24.0, f"{share} lost") if lower else (None, f"{share} lost, unknown"))
    bar = conservation.build_conservation(one)
    assert [part.number for part in bar.parts if part.kind == "missing"] == [str(50 - lower)]
    assert [part.number for part in bar.parts if part.kind == "surely"] == ([str(lower)] if lower else [])
    assert f"50 missing ({told} lost{'' if lower else ', unknown'})" in bar.total


def test_what_is_deferred_stands_beside_the_loss() -> None:
    """Messages that wait for a later try are named apart, with their node, and not at all where there are none."""
    one = window(0, deferred=9, in_flight=9, nodes={"b": {"deferred": 9}})
    assert dict(loss_table.build_figures(one))["deferred"] == "9"
    (row,) = [row for row in loss_table.build_loss_table(one).rows if row.name == "deferred"]
    assert [cell.text for cell in row.cells] == [texts.NONE, "9"]
    assert ("deferred", "9 kept by a node for a later try") in conservation.build_conservation(one).notes
    none = window(0)
    assert "deferred" not in dict(loss_table.build_figures(none))
    assert "deferred" not in [row.name for row in loss_table.build_loss_table(none).rows]
    assert "deferred" not in dict(conservation.build_conservation(none).notes)


def test_what_was_delivered_elsewhere_stands_beside_the_loss() -> None:
    """Of what is lost where all is sure, of what is missing where it is not, and nowhere where there is none."""
    one = window(0, lost={"b": 30}, partial=12)
    assert dict(loss_table.build_figures(one))["delivered elsewhere"] == "12"
    (said,) = [words for name, words in conservation.build_conservation(one).notes if name == "partial"]
    assert said == "of the lost 12 were delivered elsewhere: they left another end of the pathway"
    unsure = replace(one, lost_lower=0, verdict=Verdict.UNKNOWN)
    assert ("partial", said.replace("lost", "missing")) in conservation.build_conservation(unsure).notes
    none = replace(one, partial=0)
    assert "delivered elsewhere" not in dict(loss_table.build_figures(none))
    assert "partial" not in dict(conservation.build_conservation(none).notes)


def test_lags_of_a_side_that_is_not_stamped_have_no_point() -> None:
    """Three percentiles a step of the one that is, in ms."""
    points = series.build_lag_points(
        stretch(window(0, nodes={"b": {"lag_in_us": Quantiles(5, 0, 1_000, 2_000, 3_000, 4_000)}})), "b", UTC
    )
    assert [(point.line, point.part, point.value) for point in points] == [
        ("lag in", "p50", 1.0),
        ("lag in", "p95", 2.0),
        ("lag in", "p99", 3.0),
    ]


def test_steps_that_nobody_knows_have_a_band_and_no_value() -> None:
    """UNKNOWN in a row is one band, what is not final another; neither has a value in the heat map."""
    made = stretch(
        window(0),
        window(1, verdict=Verdict.UNKNOWN),
        window(2, verdict=Verdict.UNKNOWN),
        without_verdict(window(3, status=Status.PROVISIONAL)),
    )
    assert [(one.start_us, one.end_us, one.word) for one in series.build_bands(made)] == [
        (at(1), at(3), "UNKNOWN"),
        (at(3), at(4), "not final"),
    ]
    whole = [cell for cell in series.build_heat_cells(made, HeatMeasure.LOSS, UTC) if cell.row == series.END_TO_END]
    assert [cell.value is None for cell in whole] == [False, True, True, True]
    assert [cell.word for cell in whole] == ["CLEAN", "UNKNOWN", "UNKNOWN", "PROVISIONAL"]
    assert [cell.text for cell in whole] == ["0% lost", *["unknown"] * 2, "not judged yet"]


def test_process_durations_stand_on_each_other_and_negative_ones_nowhere() -> None:
    """A piece begins where the one below it ends."""
    timed = {"a": {"process_duration_p95_us": 2_000}, "b": {"process_duration_p95_us": 3_000}}
    pieces = series.build_duration_pieces(stretch(window(0, nodes=timed)), ("a", "b"), UTC)
    assert [(one.low, one.high) for one in pieces] == [(0, 2), (2, 5)]
    shares = series.build_share_points(window(0, nodes=timed), ("a", "b"))
    assert [one.part for one in shares] == ["40.0%", "60.0%"]
    skewed = timed | {"a": {"process_duration_p95_us": -1}}
    assert [one.line for one in series.build_duration_pieces(stretch(window(0, nodes=skewed)), ("a", "b"), UTC)] == [
        "b"
    ]


def test_what_a_ring_and_a_stack_do_not_show_is_said() -> None:
    """Nodes with shorter durations than those that have a colour, with none, and at 0 or below, each once."""
    names = tuple(f"n{place}" for place in range(12))
    lasting: dict[str, Any] = {
        name: {"process_duration_p95_us": 1_000 + place} for place, name in enumerate(names[:11])
    }
    one = window(0, names=names, nodes=lasting)
    assert series.format_left_out(one, series.select_slowest(one)) == (
        " Not shown: 3 nodes with shorter ones; 1 node without one, as not both sides were stamped."
    )
    below = {"a": {"process_duration_p95_us": -1}, "b": {"process_duration_p95_us": 2_000}}
    both = window(0, nodes=below)
    assert series.format_left_out(both, series.select_slowest(both)) == " Not shown: a, at 0 or below."
    assert loss_table.has_negative_duration(both)
    more = window(0, nodes={name: {"process_duration_p95_us": -1} for name in ("a", "b")})
    assert series.format_left_out(more, series.select_slowest(more)) == " Not shown: a and 1 more, at 0 or below."
    well = window(0, nodes={name: {"process_duration_p95_us": 0} for name in ("a", "b")})
    assert series.format_left_out(well, series.select_slowest(well)) == " Not shown: a and 1 more, at 0 or below."
    assert series.build_share_points(well, series.select_slowest(well)) == ()
    timed = lasting | {name: {"process_duration_p95_us": place - 1} for place, name in enumerate(names[:2])}
    mixed = window(0, names=names[:11], nodes=timed)
    assert series.format_left_out(mixed, series.select_slowest(mixed)) == (
        " Not shown: 1 node with shorter ones; n0 and 1 more, at 0 or below."
    )
    all_shown = window(0, nodes={name: {"process_duration_p95_us": 1} for name in ("a", "b")})
    assert series.format_left_out(all_shown, series.select_slowest(all_shown)) == ""
    assert not loss_table.has_negative_duration(well)


def test_a_minute_that_still_receives_is_not_drawn_as_a_collapse() -> None:
    """Neither over time nor in the hour of the overview; one that waits for what is in flight is drawn."""
    steps = [
        without_verdict(replace(window(place, status=one), known=10, delivered=10))
        for place, one in enumerate((Status.FINAL, Status.PROVISIONAL, Status.OPEN))
    ]
    made = stretch(*steps)
    assert {point.start_us for point in series.build_arrival_points(series.select_finished(made), "", UTC)} == {
        at(0),
        at(1),
    }
    assert [series.is_running(made, one) for one in made.steps] == [False, False, True]
    lately = tuple(
        WindowSummary(one.window_start_us, one.status, one.verdict, known, 0)
        for one, known in zip(steps, (100, 50, 1_000), strict=True)
    )
    bars = row(steps[0], recent_windows=lately, last_us=at(2)).bars[-3:]
    assert [(bar.height, bar.mark is None) for bar in bars] == [(1.0, False), (0.5, False), (0.0, True)]


def test_an_hour_that_is_not_over_is_not_drawn() -> None:
    """An hour that is not over is not drawn, and every other hour is."""
    hours = tuple(rolled_up(at(60 * place), windows) for place, windows in enumerate((60, 50, 30)))
    made = replace(stretch(), steps=hours, step_us=60 * MINUTE_US)
    assert series.select_finished(made) == hours
    assert series.format_running(made) == series.format_running(replace(made, steps=())) == ""
    still = replace(made, running_from_us=at(120))
    assert series.select_finished(still) == hours[:2]
    assert series.format_running(still) == "the newest hour is not over for the monitor yet"
    assert series.select_finished(replace(still, steps=hours[1:2])) == hours[1:2]


def test_the_worst_of_the_last_hour_stands_beside_the_newest_minute() -> None:
    """Of those that are as bad the one that lost most, then the newest; one that is not final is none."""

    def minute(place: int, verdict: Verdict | None, lost: int = 0, status: Status = Status.FINAL) -> WindowSummary:
        return WindowSummary(at(place), status, verdict, 1_000, lost)

    lossy = minute(1, Verdict.LOSSY, 20), minute(2, Verdict.LOSSY, 50), minute(3, Verdict.LOSSY, 50)
    lately = (*lossy, minute(4, Verdict.UNKNOWN), minute(5, Verdict.CLEAN), minute(6, None, 900, Status.PROVISIONAL))
    shown = row(window(5), recent_windows=lately)
    assert shown.mark.word == "CLEAN"
    assert shown.worst == overview.WorstWindow(colours.select_mark(Verdict.LOSSY), "5.00%", at(3))
    assert row(window(5), recent_windows=lately[4:]).worst == overview.WorstWindow(
        colours.select_mark(Verdict.CLEAN), "", at(5)
    )
    assert row(None, recent_windows=lately[5:]).worst is None


def test_streams_stand_by_the_worst_of_their_last_hour() -> None:
    """Then by their newest minute, then by name: a loss of ten minutes ago is not hidden by a minute that is well."""

    def stream(name: str, newest: WindowResult, *lately: tuple[Verdict, int]) -> StreamSummary:
        told = tuple(WindowSummary(at(20 + n), Status.FINAL, one, 1_000, lost) for n, (one, lost) in enumerate(lately))
        return StreamSummary(name, newest, told, at(0), at(29))

    found = (
        stream("a-well", window(29), (Verdict.CLEAN, 0)),
        stream("b-lost-little", window(29), (Verdict.LOSSY, 1), (Verdict.CLEAN, 0)),
        stream("c-lost-much", window(29), (Verdict.LOSSY, 900), (Verdict.CLEAN, 0)),
        stream("d-unknown", window(29), (Verdict.UNKNOWN, 0), (Verdict.CLEAN, 0)),
        stream("e-loses-little", window(29, lost={"b": 1}), (Verdict.LOSSY, 1)),
    )
    shown = [one.stream for one in overview.build_rows(StreamsOverview(found, ReadProgress(at(30))), at(30))]
    assert shown == ["c-lost-much", "e-loses-little", "b-lost-little", "d-unknown", "a-well"]
