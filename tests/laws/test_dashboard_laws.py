"""Laws of what the dashboard shows: URLs come back, no chart is too large, nothing lost is shown as nothing."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import UTC
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hopwatch.dashboards import markup
from hopwatch.dashboards.charts import pathway as drawn
from hopwatch.dashboards.queries.models import Edge, Graph, StreamRange
from hopwatch.dashboards.views import address, conservation, display_range, pathway, series
from hopwatch.dashboards.views.address import (
    ComparedPeriod,
    FoldState,
    HeatMeasure,
    PageAddress,
    PageName,
    RangePreset,
    Zone,
)
from hopwatch.display import loss_table, step_marks, texts
from hopwatch.display.colours import LIGHT
from hopwatch.monitor.outliers.explanation import Explanation
from hopwatch.monitor.outliers.findings import OutlierFinding
from hopwatch.monitor.outliers.quantities import Quantity
from hopwatch.monitor.results import Verdict, WindowResult
from tests.support.conclusions import window_results
from tests.support.examples import examples
from tests.support.windows import lag, window

MOST_US: Final = 4_000_000_000_000_000
"""About the year 2096."""
MOMENTS: Final = st.integers(0, MOST_US)
MINUTES: Final = st.integers(0, MOST_US // 60_000_000).map(lambda minute: minute * 60_000_000)


@st.composite
def addresses(draw: st.DrawFn) -> PageAddress:
    """Draw any address that a page may have."""
    stream = draw(st.text(min_size=1))
    start, end = sorted(draw(st.lists(MOMENTS, min_size=2, max_size=2, unique=True)))
    is_fixed = draw(st.booleans())
    page = draw(st.sampled_from(PageName))
    return PageAddress(
        page,
        stream if page.needs_stream else draw(st.sampled_from(["", stream])),
        draw(st.text()),
        draw(MINUTES if page is PageName.WINDOW else st.none() | MINUTES),
        draw(st.sampled_from(RangePreset)),
        start if is_fixed else None,
        end if is_fixed else None,
        draw(st.sampled_from(Zone)),
        draw(st.sampled_from(HeatMeasure)),
        draw(st.sampled_from(ComparedPeriod)),
        draw(st.text()),
        draw(st.text(st.characters(exclude_characters="\0"), max_size=address.MAX_SEARCH_CHARS)),
        draw(st.integers(1, address.MAX_PART)),
        draw(st.sampled_from(FoldState)),
    )


@st.composite
def losses(draw: st.DrawFn) -> WindowResult:
    """Draw a window whose second node misses messages, of which some, all or none are surely lost."""
    transit, inside = draw(st.integers(0, 500)), draw(st.integers(0, 500))
    missing = transit + inside
    lower = draw(st.integers(0, missing))
    upper = draw(st.none() | st.integers(missing, missing + 50))
    of_b = {
        "lost_in_transit": transit,
        "lost_inside": inside,
        "loss": missing,
        "loss_lower": lower,
        "loss_upper": upper,
    }
    ends: dict[str, Any] = {"lost": missing, "lost_lower": lower, "lost_upper": upper, "loss_ratio": missing / 1_000}
    verdict = Verdict.LOSSY if lower else Verdict.UNKNOWN if upper != 0 else Verdict.CLEAN
    return replace(window(0, verdict=verdict, nodes={"b": of_b | {"loss_ratio": missing / 1_000}}), **ends)


@given(losses())
def test_only_what_is_surely_lost_has_the_colour_of_loss(one: WindowResult) -> None:
    """In tables, bar, pathway and over time; and where nothing surely is, no figure of loss is one number over 0."""
    graph, lower = Graph(("a", "b"), (Edge(0, 1, is_required=True),)), one.lost_lower
    cells = [line.cells[1] for line in loss_table.build_loss_table(one).rows]
    assert any(cell.is_bad for cell in cells) is (lower > 0)
    assert {part.number for part in conservation.build_conservation(one).parts if part.kind == "surely"} <= {
        f"{lower:,}"
    }
    (arrow,) = pathway.build_drawing(graph, one).arrows
    assert arrow.surely_lost <= min(arrow.missing, lower)
    chart = str(drawn.build_options(pathway.build_drawing(graph, one), LIGHT, ""))
    assert (LIGHT.lossy in chart) is (lower > 0)
    heat = series.build_heat_cells(StreamRange("orders", graph, (one,), 60_000_000, None), HeatMeasure.LOSS, UTC)
    assert all((cell.value or 0) > 0 for cell in heat if lower and cell.row != "a")
    assert all(not cell.value for cell in heat if not lower)
    figures = dict(loss_table.build_figures(one))
    if not lower:
        told = {figures["lost end to end"], *(cell.text for cell in cells[1:3])}
        assert all(words in {"0", "0%"} or words.startswith(("0 ", "0% ", "?")) for words in told)


@given(addresses())
def test_a_url_opens_what_it_was_made_of(looked_at: PageAddress) -> None:
    """To the microsecond, whatever names mean to a URL."""
    assert address.parse_address(address.format_address(looked_at)) == (looked_at, ())


@given(
    st.dictionaries(
        st.sampled_from(
            ["page", "stream", "window", "range", "from", "to", "zone", "heat", "id", "find", "part", "folded"]
        ),
        st.text(),
    )
)
def test_any_query_string_is_an_address(query: dict[str, str]) -> None:
    """Parts of a query string without meaning are reported and left out; the rest is read again as it is."""
    read, _ = address.parse_address(query)
    assert address.parse_address(address.format_address(read)) == (read, ())


@example(60_000_000, 60_000_000, RangePreset.HOUR, 0, 0, 0)
@given(MOMENTS, MOMENTS, st.sampled_from(RangePreset), MOMENTS, MOMENTS, st.none() | MINUTES)
def test_no_range_has_more_steps_than_a_chart_has_points(
    first_us: int, last_us: int, moving: RangePreset, from_us: int, to_us: int, window_us: int | None
) -> None:
    """Whole steps, not empty, one that moves on ends with the newest window or holds the one that is looked at."""
    first_us, last_us = (at - at % 60_000_000 for at in sorted((first_us, last_us)))
    start, end = sorted((from_us, to_us))
    for looked_at in (PageAddress(range=moving, window_us=window_us), PageAddress(from_us=start, to_us=end + 1)):
        found = display_range.select_range(looked_at, first_us, last_us)
        assert 0 < found.step_count <= display_range.MAX_STEPS
        assert found.from_us % found.step_us == found.to_us % found.step_us == 0
    moved = display_range.select_range(PageAddress(range=moving), first_us, last_us)
    assert moved.from_us <= last_us < moved.to_us
    around = display_range.select_range(PageAddress(range=moving, window_us=window_us), first_us, last_us)
    if window_us is not None:
        assert around.from_us <= window_us < around.to_us


@given(st.floats(0, MOST_US / 1e3), st.floats(0, MOST_US / 1e3))
def test_a_drag_chooses_whole_minutes_that_hold_it(first_ms: float, last_ms: float) -> None:
    """A drag in either direction chooses whole minutes around it."""
    from_us, to_us = display_range.parse_drag(first_ms, last_ms)
    assert from_us % 60_000_000 == to_us % 60_000_000 == 0
    assert from_us <= min(first_ms, last_ms) * 1e3 + 1
    assert to_us >= max(first_ms, last_ms) * 1e3 - 1
    assert to_us > from_us


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_some_is_never_shown_as_none_and_not_all_never_as_all(part: int, more: int) -> None:
    """In ppm and in per cent, however small the part is."""
    whole = part + more
    if not whole:
        assert (texts.format_ppm(part, whole), texts.format_percent(part, whole)) == (texts.NONE, texts.NONE)
        return
    assert (texts.format_ppm(part, whole) == "0 ppm") == (part == 0)
    assert (texts.format_percent(part, whole) == "0%") == (part == 0)
    assert (texts.format_percent(part, whole) == "100%") == (more == 0)
    shown = float(texts.format_percent(part, whole).removesuffix("%"))
    assert (shown == 0) == (part == 0)
    assert (shown == 100) == (more == 0)


@given(st.integers(-(10**15), 10**15))
def test_every_span_and_age_has_a_unit(for_us: int) -> None:
    """And thousands are told apart."""
    assert re.fullmatch(r"-?[\d,]+(\.\d)? (µs|ms|s|min|h|d)", texts.format_lag(for_us))
    assert re.fullmatch(r"\d+ s|\d+ min \d+ s|\d+ h \d+ min|[\d,]+ d \d+ h", texts.format_age(for_us))


@given(st.text())
def test_no_word_is_markup(words: str) -> None:
    """Of HTML nothing is left that opens a tag or ends an attribute; of Markdown every sign is escaped."""
    assert not set(markup.escape_html(words)) & set("<>\"'")
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]<>$:#]", markup.escape_markdown(words))


@given(window_results())
def test_a_node_is_clean_only_if_nothing_can_be_lost_there(result: WindowResult) -> None:
    """LOSSY by the lower bound; CLEAN and IDLE only with an upper bound of 0; not final is neither."""
    for node in result.nodes:
        word = step_marks.mark_node(node, is_final=True).mark.word
        assert (word == "LOSSY") == (node.loss_lower != 0)
        if word in {"CLEAN", "IDLE"}:
            assert node.loss_upper == 0
        assert step_marks.mark_node(node, is_final=False).mark.word not in set(Verdict)


@given(st.integers(1, 400), st.integers(1, 60), st.sampled_from(HeatMeasure))
def test_no_heat_map_has_too_many_cells(steps: int, nodes: int, measure: HeatMeasure) -> None:
    """The nodes that lost most stay, and the row end to end always does."""
    names = tuple(f"n{place}" for place in range(nodes))
    graph = Graph(names, tuple(Edge(place, place + 1, is_required=True) for place in range(nodes - 1)))
    one = window(0, names=names, lost={names[-1]: 5})
    made = tuple(replace(one, window_start_us=one.window_start_us + 60_000_000 * step) for step in range(steps))
    cells = series.build_heat_cells(StreamRange("orders", graph, made, 60_000_000, None), measure, UTC)
    assert len(cells) <= max(display_range.MAX_POINTS, steps)
    assert sum(cell.row == series.END_TO_END for cell in cells) == steps


@given(
    st.integers(1, display_range.MAX_STEPS),
    st.integers(1, 12),
    st.integers(0, 3_000),
    st.randoms(use_true_random=False),
)
@settings(max_examples=examples(20))
def test_no_chart_has_more_points_than_can_be_told_apart(steps: int, nodes: int, odd: int, dice: random.Random) -> None:
    """Lines times steps, and marks of outliers, however many of each there are; the highest percentile stays."""
    names = tuple(f"n{place}" for place in range(nodes))
    lags = {"lag_in_us": lag(5_000), "lag_out_us": lag(6_000), "process_duration_p95_us": 1_000}
    one = window(0, names=names, nodes=dict.fromkeys(names, lags))
    made = tuple(replace(one, window_start_us=one.window_start_us + 60_000_000 * step) for step in range(steps))
    why = Explanation(Quantity.LAG_IN_P95_US, 9_000, None, None, (), 0, 1.0)
    findings = tuple(OutlierFinding(dice.randrange(steps), names[0], dice.random() < 0.5, why) for _ in range(odd))
    stretch = StreamRange("orders", Graph(names, ()), made, 60_000_000, None, findings)
    assert len(series.build_arrival_points(stretch.steps, "", UTC)) <= display_range.MAX_POINTS
    chosen = series.select_slowest(one, display_range.limit_lines(steps, series.MAX_COLOURS))
    assert len(series.build_duration_pieces(stretch, chosen, UTC)) <= display_range.MAX_POINTS
    points, marked = (
        series.build_lag_points(stretch, names[0], UTC),
        series.build_outlier_markers(stretch, names[0], UTC),
    )
    for side in ("lag in", "lag out"):
        drawn = [point for point in points if point.line == side]
        assert {point.start_us for point in drawn if point.part == "p99"} == {each.window_start_us for each in made}
        assert len(drawn) + sum(mark.line == side for mark in marked) <= display_range.MAX_POINTS
    told = sum(found.is_outlier for found in findings)
    assert sum("outlier" in mark.text for mark in marked) == min(told, display_range.MAX_POINTS - len(points) // 2)


@given(st.integers(1, 12), st.sets(st.tuples(st.integers(0, 12), st.integers(0, 12))))
def test_nodes_stand_behind_what_leads_to_them_and_none_on_another(count: int, pairs: set[tuple[int, int]]) -> None:
    """For any graph whose nodes are in topological order."""
    edges = tuple(Edge(a, b, is_required=True) for a, b in sorted(pairs) if a < b < count)
    drawing = pathway.build_drawing(Graph(tuple(f"n{place}" for place in range(count)), edges), None)
    assert all(drawing.nodes[edge.source].column < drawing.nodes[edge.target].column for edge in edges)
    assert len({(node.column, node.row) for node in drawing.nodes}) == count
