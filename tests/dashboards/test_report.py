"""Tests of the report that is a file: the numbers of the JSON, no network, no script, no Streamlit, names as text."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hopwatch.cli.main import main
from hopwatch.dashboards.queries.report import MAX_STEPS, ReportQuery
from hopwatch.dashboards.report import page, tables
from hopwatch.dashboards.views import display_range, series
from hopwatch.display import texts
from hopwatch.monitor.results import NodeCounts, Status, Verdict, WindowResult
from hopwatch.monitor.store import dialect, rollups, schema
from hopwatch.monitor.texts import loss_bounds
from tests.support.dashboard_stores import HOSTILE, build_windows, chain, drop_all_digests, fill, without_verdict
from tests.support.windows import at, lag, window
from tests.support.workspace import Workspace, one_of_ten_lost

BARE = """
import importlib.abc, sys
class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "streamlit":
            raise ModuleNotFoundError(f"not here: {name}", name=name)
sys.meta_path.insert(0, Bare())
from hopwatch.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Document(HTMLParser):
    """A report as a program reads it: the cells of each table by its class, all tags with their attributes, words."""

    def __init__(self, text: str) -> None:
        """Read it."""
        super().__init__()
        self.tables: dict[str, list[list[list[str]]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._rows: list[list[str]] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; a table, a row or a cell begins."""
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "table":
            self._rows = []
            self.tables.setdefault(str(found["class"]).split()[-1], []).append(self._rows)
        elif tag == "tr":
            self._rows.append([])
        elif tag in {"th", "td"}:
            self._in_cell = True
            self._rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        """Note where a cell ends."""
        self._in_cell = self._in_cell and tag not in {"th", "td"}

    def handle_data(self, data: str) -> None:
        """Note words."""
        self.words += data
        if self._in_cell:
            self._rows[-1][-1] += data


def written(place: Workspace, *flags: str) -> Document:
    """Return the report that the command writes."""
    file = place.folder / "incident.html"
    assert place.run("report", "--html", str(file), *flags) == 0
    return Document(file.read_text())


def told(place: Workspace, capsys: pytest.CaptureFixture[str], *flags: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return what the command says as JSON of the same range."""
    capsys.readouterr()
    assert place.run("report", "--json", *flags) == 0
    return json.loads(capsys.readouterr().out)


def filled(folder: Path, *results: WindowResult) -> Workspace:
    """Return a place with these windows in its store."""
    place = Workspace(folder).configure()
    fill(place.store_url, *results).dispose()
    return place


def busy() -> list[WindowResult]:
    """Return windows of every verdict, and one that is not final."""
    lags = {"b": {"lag_in_us": lag(40_000), "lag_out_us": lag(52_500), "process_duration_p95_us": 12_500}}
    made = [window(minute, known=1_000 + minute, nodes=lags, lag_us=lag(52_500)) for minute in range(8)]
    made[3] = window(3, lost={"b": 30}, lost_upper=None, reasons=("a hole in the books of b",), revision=2)
    made[5] = window(5, verdict=Verdict.UNKNOWN, reasons=("b is silent",))
    return [*made, without_verdict(window(8, status=Status.PROVISIONAL, in_flight=4))]


COUNTS = ("known", "delivered", "filtered", "rejected", "lost", "partial", "in_flight", "deferred", "recovered")


def assert_same(row: list[str], one: dict[str, Any]) -> None:
    """Check that a row of the file says what the JSON says of a step."""
    counts = {name: texts.format_count(one[name]) for name in COUNTS}
    # Bounds come first; where no loss is seen and more may be lost, nobody knows.
    counts["lost"] = loss_bounds.format_bounds(one["lost"], one["lost_lower"], one["lost_upper"])
    assert row[2:11] == list(counts.values())
    assert row[11] == (texts.format_count(one["lost"]) if one["lost"] != one["lost_lower"] else texts.NONE)
    assert row[12] == texts.format_lag(one["lag_us"]["p95"] if one["lag_us"] else None)


def test_it_has_the_numbers_of_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Window by window, verdict and reasons included, of the same range."""
    place = filled(tmp_path, *busy())
    flags = ("--from", "2026-01-01T00:01:00Z", "--to", "2026-01-01T00:09:00Z")
    document = written(place, *flags)
    ((_, *rows),) = document.tables["hw-steps"]
    windows = told(place, capsys, *flags)["streams"][0]["windows"]
    assert len(rows) == len(windows) == 8
    for row, one in zip(rows, windows, strict=True):
        assert_same(row, one)
        assert row[0] == one["window_start"].replace("T", " ").replace(":00Z", " UTC")
        assert row[1].split()[-1] == (one["verdict"] or one["status"])
        assert row[13].split(",")[0] == one["status"]
        assert row[14] == "; ".join(one["reasons"])


def test_it_says_up_to_when_the_monitor_has_read(tmp_path: Path) -> None:
    """At its head; whoever opens the attachment later asks nobody."""
    standing = written(filled(tmp_path, *build_windows()))
    assert "The monitor has read nothing that came after 2026-01-01 00:11:55 UTC (" in standing.words
    (tmp_path / "once").mkdir()
    once = written(Workspace(tmp_path / "once").configure().watch(*one_of_ten_lost()))
    assert "A store that was filled once, as of 2026-01-01 00:06:40 UTC." in once.words


@pytest.mark.parametrize("by", ["hour", "day"])
def test_hours_and_days_have_the_numbers_of_the_json(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the whole has their sum."""
    place = filled(tmp_path, *busy(), *[replace(window(60 * hour), lost_upper=0) for hour in (1, 2, 30)])
    document = written(place, "--by", by)
    ((_, *rows),) = document.tables["hw-steps"]
    spans = told(place, capsys, "--by", by)["streams"][0][f"{by}s"]
    assert len(rows) == len(spans) > 1
    for row, one in zip(rows, spans, strict=True):
        assert_same(row, one)
        assert row[13] == texts.format_count(one["windows"])
    ((_, whole),) = document.tables["hw-streams"]
    assert whole[2] == texts.format_count(sum(one["known"] for one in spans))


def test_an_hour_says_what_was_lost_by_count(tmp_path: Path) -> None:
    """Beside its verdicts, as no id shows it."""
    lost = NodeCounts("n", 7, 7, 0, 0, 1.0, "a", 10, None, 3, None, None, None)
    place = filled(
        tmp_path,
        replace(window(0, verdict=Verdict.LOSSY), counts=(lost,)),
        replace(window(60), counts=(replace(lost, lost_before_lower=0),)),
    )
    ((_, *rows),) = written(place, "--by", "hour").tables["hw-steps"]
    assert [row[14] for row in rows] == [
        "1 LOSSY; n, by count: 7 came; 10 left a by ids, 3 more, at least 3 lost on the way",
        "1 CLEAN",
    ]


def test_an_hour_that_is_not_over_is_drawn_and_said_to_be_so(tmp_path: Path) -> None:
    """One of a store that was filled once is over, however few minutes it has."""
    (tmp_path / "live").mkdir()
    live = written(filled(tmp_path / "live", *build_windows(3, known=10)), "--by", "hour")
    assert "Expected and arrived, end to end; the newest hour is not over for the monitor yet" in live.words
    (tmp_path / "once").mkdir()
    once = written(Workspace(tmp_path).configure().watch(*one_of_ten_lost()), "--by", "hour")
    assert "not over" not in once.words
    said = [str(found.get("aria-label")) for _, found in once.tags] + [once.words]
    assert any("10 expected, 9 arrived" in one for one in said)
    assert not any("0 expected, 0 arrived" in one for one in said)


def test_a_range_without_digests_says_why_it_has_no_lag(tmp_path: Path) -> None:
    """A report by the hour has the lags of the hours."""
    place = filled(tmp_path, *busy())
    before = written(place).words
    drop_all_digests(dialect.create_engine(place.store_url))
    assert series.NO_LAG not in before
    assert series.NO_LAG in written(place).words
    assert series.NO_LAG not in written(place, "--by", "hour").words


def test_nodes_and_lost_ids_are_those_of_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a store that a monitor has filled."""
    place = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    document = written(place)
    (one,) = told(place, capsys)["streams"][0]["windows"]
    ids = [lost for node in one["nodes"] for lost in node["lost_ids"]]
    ((_, row),) = document.tables["hw-ids"]
    assert row[3].split() == ids
    assert len(ids) == 1
    for head, _, *lines in document.tables["hw-matrix"]:
        assert head[1:] == [node["node"] for node in one["nodes"]]
        found = {line[0]: line[1:] for line in lines}
        assert found["count"] == [texts.format_count(node["seen"]) for node in one["nodes"]]
        losses = [(node["loss"], node["loss_lower"], node["loss_upper"]) for node in one["nodes"]]
        assert found["loss of node"] == [loss_bounds.format_bounds(*loss) for loss in losses]


def test_it_fetches_nothing_and_runs_nothing(tmp_path: Path) -> None:
    """No script, no link out of it, no picture from elsewhere; every chart has a title and is told in words."""
    document = written(filled(tmp_path, *busy()))
    names = {name for name, _ in document.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert all(str(found.get("href", "#")).startswith("#") for _, found in document.tags)
    assert not any("src" in found or any(key.startswith("on") for key in found) for _, found in document.tags)
    policy = next(found["content"] for name, found in document.tags if found.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    pictures = [name for name, _ in document.tags].count("svg")
    assert pictures == [name for name, _ in document.tags].count("desc") == 4
    assert "url(" not in (tmp_path / "incident.html").read_text()


def test_it_needs_no_streamlit(tmp_path: Path) -> None:
    """A report is written without Streamlit."""
    place = filled(tmp_path, *busy())
    command = [sys.executable, "-c", BARE, "report", "--config", str(place.config), "--html", str(tmp_path / "r.html")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "the report is in" in ended.stderr
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Of streams and of nodes, in tables and charts."""
    made = [one for name in HOSTILE for one in build_windows(3, stream=name, names=HOSTILE, lost={HOSTILE[0]: 5})]
    document = written(filled(tmp_path, *made))
    assert "img" not in {name for name, _ in document.tags}
    assert all(name in document.words for name in HOSTILE)


def test_a_stream_of_which_nothing_came_says_so(tmp_path: Path) -> None:
    """Beside one that has windows, of which none is final yet."""
    place = Workspace(tmp_path).configure()
    provisional = without_verdict(window(0, status=Status.PROVISIONAL))
    fill(place.store_url, provisional, pathways={"quiet": chain("a", "b")}).dispose()
    words = written(place).words
    assert "Nothing of this stream was read in the range." in words
    assert "No window of the range is final yet." in words


def test_one_stream_may_be_chosen(tmp_path: Path) -> None:
    """Then no other is in the file."""
    place = filled(tmp_path, *build_windows(3), *build_windows(3, stream="parcels"))
    place.configure(place.config.read_text() + '[streams.parcels]\npath = "a -> b"\n')
    assert "parcels" in written(place).words
    assert "parcels" not in written(place, "--stream", "orders").words


def test_it_may_go_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And with a threshold, whose exit code is as ever; without them stdout is empty."""
    place = filled(tmp_path, *busy())
    file = str(tmp_path / "r.html")
    capsys.readouterr()
    assert place.run("report", "--html", file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["streams"][0]["stream"] == "orders"
    assert place.run("report", "--html", file, "--fail-on-loss", "0.001") == 1
    assert capsys.readouterr().out == ""


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a line, with exit 2."""
    place = filled(tmp_path, *busy())
    file = tmp_path / "nowhere" / "r.html"
    assert main(["report", "--config", str(place.config), "--html", str(file)]) == 2
    assert f"--html cannot write {file}: No such file or directory" in capsys.readouterr().err


def test_a_range_that_is_too_long_is_told_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before it is read; by the hour it is written."""
    one = window(0)
    many = [replace(one, window_start_us=at(minute)) for minute in range(MAX_STEPS + 1)]
    place = filled(tmp_path, *many)
    assert MAX_STEPS == display_range.MAX_STEPS
    assert place.run("report", "--html", str(tmp_path / "r.html")) == 2
    said = capsys.readouterr().err
    assert "a report has room for 1,000 windows of a stream, and orders has 1,001 in the range" in said
    assert "narrow it with --from and --to, or take longer spans with --by" in said
    assert len(written(place, "--by", "hour").tables["hw-steps"][0]) == 18


def test_nodes_that_a_chart_has_no_room_for_are_counted(tmp_path: Path) -> None:
    """Those that lost most stay; the tables have all."""
    names = tuple(f"n{place}" for place in range(40))
    place = filled(tmp_path, *[window(minute, names=names, lost={"n39": 1}) for minute in range(60)])
    document = written(place)
    assert "Loss of each node over time, those that lost most; 8 more are not shown" in document.words
    assert document.tables["hw-matrix"][0][0][1:] == list(names)


def test_no_row_says_that_nothing_was_lost_where_nobody_knows(tmp_path: Path) -> None:
    """Of UNKNOWN windows the loss is not 0, and what is not judged has lost nothing."""
    steps = (window(0), window(1, verdict=Verdict.UNKNOWN), *build_windows(1, status=Status.PROVISIONAL, verdict=None))
    place = filled(tmp_path, *[replace(one, window_start_us=at(n)) for n, one in enumerate(steps)])
    head, *rows = written(place).tables["hw-steps"][0]
    cells = [dict(zip(head, row, strict=True)) for row in rows]
    assert [one["lost"] for one in cells] == ["0", "?", "0"]
    assert [one["missing"] for one in cells] == ["\N{EN DASH}"] * 3


def test_what_nobody_knows_is_never_loud(tmp_path: Path) -> None:
    """Of 50 that are missing and none that is surely lost: bounds, not a number; and no cell of the colour of loss."""
    of_b = {"lost_in_transit": 50, "loss": 50, "loss_lower": 0, "loss_upper": 50, "loss_ratio": 1.0, "seen": 0}
    ends: dict[str, Any] = {
        "lost": 50,
        "lost_upper": 50,
        "loss_ratio": 1.0,
        "delivered": 0,
        "reasons": ("b is silent",),
    }
    one = window(0, known=50, verdict=Verdict.UNKNOWN, nodes={"b": of_b})
    document = written(filled(tmp_path, replace(one, **ends)))
    head, row = document.tables["hw-steps"][0]
    told = dict(zip(head, row, strict=True))
    assert (told["lost"], told["missing"], told["why"]) == ("0 to 50", "50", "b is silent")
    assert "0 to 50 lost of 50, unknown" in document.words
    assert not any(found.get("class") == "hw-bad" for _, found in document.tags)
    assert "50 lost" not in document.words.replace("0 to 50 lost", "")


def test_nothing_is_in_a_range_that_ends_before_it_begins(tmp_path: Path) -> None:
    """At the beginning of time, too."""
    place = filled(tmp_path, *build_windows(3))
    assert "Nothing of this stream was read in the range." in written(place, "--to", "1970-01-01T00:00:00Z").words


def test_lists_are_bounded_and_say_what_is_left_out(tmp_path: Path) -> None:
    """Lost ids and windows node by node."""
    place = filled(tmp_path, *[window(minute, lost={"b": 1}) for minute in range(tables.MAX_DETAILS + 5)])
    engine = dialect.create_engine(place.store_url)
    with schema.open_snapshot(engine) as connection:
        found = ReportQuery(None, None, None, rollups.HOUR_US // 60).run(connection)
    (stream,) = found.streams
    ids = {(at(minute), "b"): tuple(f"{number:032x}" for number in range(100)) for minute in range(11)}
    document = Document(page.render_report(replace(found, streams=(replace(stream, lost_ids=ids),)), at(0), "0"))
    assert "5 more windows are not listed node by node." in document.words
    assert f"{tables.MAX_IDS:,} of 1,100 are listed." in document.words
    assert sum(len(row[3].split()) for row in document.tables["hw-ids"][0][1:]) == tables.MAX_IDS
