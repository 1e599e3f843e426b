"""Tests of what the page of a stream says of a new version: figures before and after it, and the graph of its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from pathlib import Path

import pytest

from hopwatch.dashboards.queries.models import VersionSeam
from hopwatch.dashboards.queries.stream_queries import StreamRangeQuery, query_graph
from hopwatch.dashboards.views.address import HeatMeasure
from hopwatch.dashboards.views.seam import build_seam_rows
from hopwatch.dashboards.views.series import build_heat_cells
from hopwatch.display import texts
from hopwatch.monitor.results import WindowResult
from hopwatch.monitor.store import dialect, pathway_versions, schema
from hopwatch.probes.contract.limits import WINDOW_US
from tests.support.dashboard_stores import build_windows, chain, fill, open_page, read_page, store_url
from tests.support.windows import at, window


def rename(one: WindowResult) -> WindowResult:
    """Return a window whose second node is another one."""
    return replace(one, nodes=(one.nodes[0], replace(one.nodes[1], node="c")))


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return a store whose stream goes from a to b for five minutes, and from a to c then."""
    url = store_url(tmp_path)
    windows = [*build_windows(5, lost={"b": 10}), *(rename(window(minute)) for minute in range(5, 10))]
    engine = fill(url, *windows)
    with schema.open_change(engine) as connection:
        (config,) = pathway_versions.read_versions(connection).values()
        first = replace(config, pathway=chain("a", "b"))
        now = replace(config, pathway=chain("a", "c"), valid_from_us=at(5), earlier=(first,))
        pathway_versions.save_versions(connection, {"orders": now}, 0)
    return url


def ask(url: str, first: int, last: int) -> VersionSeam | None:
    """Return the seam of a range of minutes."""
    with schema.open_snapshot(dialect.create_engine(url)) as connection:
        return StreamRangeQuery("orders", at(first), at(last), WINDOW_US).run(connection).seam


def test_a_range_has_the_figures_on_both_sides_of_its_seam(url: str) -> None:
    """Of its own windows alone; a range that begins or ends there has none."""
    seam = ask(url, 1, 10)
    assert seam is not None
    assert seam.before is not None
    assert seam.after is not None
    assert (seam.at_us, seam.before.windows, seam.after.windows) == (at(5), 4, 5)
    assert (seam.before.lost, seam.after.lost) == (40, 0)
    assert ask(url, 0, 5) is None
    assert ask(url, 5, 10) is None


def test_a_node_that_is_gone_has_a_row_in_the_heat_map(url: str) -> None:
    """Behind the others, so that it is seen where the loss end to end was."""
    with schema.open_snapshot(dialect.create_engine(url)) as connection:
        found = StreamRangeQuery("orders", at(0), at(10), WINDOW_US).run(connection)
    assert (found.graph.nodes, found.nodes) == (("a", "c"), ("a", "c", "b"))
    cells = build_heat_cells(found, HeatMeasure.LOSS, UTC)
    assert {cell.row for cell in cells} == {"end to end", "a", "c", "b"}
    assert len([cell for cell in cells if cell.row == "b"]) == 5


def test_rows_name_the_nodes_of_both_sides(url: str) -> None:
    """Those of the new version first; a node that a side does not have is a dash there."""
    seam = ask(url, 0, 10)
    assert seam is not None
    rows = {name: cells for name, *cells in build_seam_rows(seam)}
    assert list(rows) == ["end to end", "a", "c", "b"]
    assert rows["b"][:2] == ["1.00%", texts.NONE]
    assert rows["c"][0] == texts.NONE
    assert rows["c"][1].startswith("0")
    assert rows["c"][2] == texts.NONE
    empty = build_seam_rows(VersionSeam(at(5), None, seam.after))
    assert {cells[1] for cells in empty} == {texts.NONE}


def test_a_graph_is_that_of_its_moment(url: str) -> None:
    """A window of before the seam keeps the path that it was judged by."""
    with schema.open_snapshot(dialect.create_engine(url)) as connection:
        graphs = [query_graph(connection, "orders", at(minute)).nodes for minute in (4, 5)]
        assert query_graph(connection, "unknown", at(4)).nodes == ()
    assert graphs == [("a", "b"), ("a", "c")]


def test_the_page_compares_before_with_after(url: str) -> None:
    """Loss and lag stand side by side."""
    told = "Before and after the version of"
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:10:00Z"}
    page = read_page(open_page(url, stream="orders", **span))
    assert told in page
    assert "1.00%" in page
