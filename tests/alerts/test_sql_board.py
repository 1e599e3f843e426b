"""The Grafana dashboard over SQL shows what a report says: each query is asked of a store in PostgreSQL."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest

from hopwatch import Probe
from servers.postgres import Postgres
from tests.repository import ROOT
from tests.support.judged_spool import judge_spool

BOARD: Final[dict[str, Any]] = json.loads((ROOT / "alerts" / "grafana" / "hopwatch-sql.json").read_text("utf-8"))
PANELS: Final[dict[str, dict[str, Any]]] = {panel["title"]: panel for panel in BOARD["panels"]}
MESSAGES: Final = 10

Window = dict[str, Any]
Row = tuple[Any, ...]


class Judged(NamedTuple):
    """Windows of a store in PostgreSQL, all of one minute, and the database that has them."""

    windows: dict[str, list[Window]]
    start_us: int
    server: Postgres
    database: str

    def ask(self, query: str) -> list[Row]:
        """Return the rows of a query as Grafana sends it when all is chosen, of two hours."""
        at_s = self.start_us // 1_000_000
        chosen = {
            "$__unixEpochFrom()": str(at_s - 3_600),
            "$__unixEpochTo()": str(at_s + 3_600),
            "$stream": "'orders','returns'",
            "$node": "'a','b'",
        }
        for name, value in chosen.items():
            query = query.replace(name, value)
        return self.server.ask(query, self.database)


@pytest.fixture(scope="module")
def judged(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judged]:
    """Yield the windows of two streams, one of which has lost a message."""
    folder = tmp_path_factory.mktemp("judged")
    start_us = time.time_ns() // 60_000_000_000 * 60_000_000
    for stream, lost in (("orders", 1), ("returns", 0)):
        probes = [Probe(stream, node, f"spool:{folder / 'spool'}") for node in ("a", "b")]
        for number in range(MESSAGES):
            for probe in probes[: 1 if number < lost else 2]:
                with probe.passing(f"{stream}-{number}", start_us):
                    time.sleep(0.001)
        for probe in probes:
            probe.close()
    url = postgres_server.database()
    configured = '[streams.orders]\npath = "a -> b"\n[streams.returns]\npath = "a -> b"\n'
    found = judge_spool(folder, configured, url)
    windows = {stream: [one for one in told["windows"] if one["known"]] for stream, told in found.items()}
    yield Judged(windows, start_us, postgres_server, url.rpartition("/")[2])
    postgres_server.empty_all()


def of_windows(windows: dict[str, list[Window]], name: str, scale: float = 1) -> set[tuple[str, Any]]:
    """Return a figure of the windows, by stream."""
    return {(stream, window[name] / scale) for stream, all_of_it in windows.items() for window in all_of_it}


def of_nodes(windows: dict[str, list[Window]], find: Callable[[Window], Any]) -> set[tuple[str, Any]]:
    """Return a figure of the nodes of all windows, by stream and node, where there is one."""
    return {
        (f"{stream} {node['node']}", find(node))
        for stream, all_of_it in windows.items()
        for window in all_of_it
        for node in window["nodes"]
        if find(node) is not None
    }


def prefix(label: str, figures: set[tuple[str, Any]]) -> set[tuple[str, Any]]:
    """Return figures under names with a label before them."""
    return {(f"{label}, {name}", value) for name, value in figures}


EXPECTED: Final[dict[str, Callable[[dict[str, list[Window]]], set[tuple[str, Any]]]]] = {
    "Verdicts": lambda told: {(name, window["verdict"]) for name, windows in told.items() for window in windows},
    "Messages a window": lambda told: (
        prefix("known", of_windows(told, "known")) | prefix("delivered", of_windows(told, "delivered"))
    ),
    "Lost end to end, at least and at most": lambda told: (
        prefix("at least", of_windows(told, "lost_lower")) | prefix("at most", of_windows(told, "lost_upper"))
    ),
    "Lost at each node, at least": lambda told: of_nodes(told, lambda node: node["loss_lower"]),
    "Lag end to end, p50, p95, p99": lambda told: {
        (f"{part}, {name}", window["lag_us"][part] / 1_000)
        for name, windows in told.items()
        for window in windows
        for part in ("p50", "p95", "p99")
    },
    "Lag in of each node, p95": lambda told: of_nodes(
        told, lambda node: node["lag_in_us"] and node["lag_in_us"]["p95"] / 1_000
    ),
    "Time inside each node, p95": lambda told: of_nodes(
        told, lambda node: node["inside_us"] and node["inside_us"]["p95"] / 1_000
    ),
}
"""Name and value of each point, by the titles of panels."""


@pytest.mark.parametrize("title", EXPECTED)
def test_a_panel_shows_what_the_report_says(title: str, judged: Judged) -> None:
    """Each point is at the start of its window."""
    rows = [row for target in PANELS[title]["targets"] for row in judged.ask(target["rawSql"])]
    assert {(name, float(value) if title != "Verdicts" else value) for _, name, value in rows} == EXPECTED[title](
        judged.windows
    )
    assert {moment.timestamp() for moment, *_ in rows} == {judged.start_us / 1e6}


def test_the_table_has_the_windows_that_are_not_clean(judged: Judged) -> None:
    """With their bounds, and reasons where there are any."""
    (target,) = PANELS["Windows that are not clean"]["targets"]
    ((_, stream, status, verdict, known, least, most, reasons),) = judged.ask(target["rawSql"])
    assert (stream, status, verdict, known, least, most) == ("orders", "FINAL", "LOSSY", MESSAGES, 1, 1)
    assert json.loads(reasons) == []


def test_every_panel_and_variable_is_asked() -> None:
    """No panel goes without a test, and each says what it shows."""
    assert PANELS.keys() == EXPECTED.keys() | {"Windows that are not clean"}
    assert all(panel["description"] for panel in PANELS.values())


@pytest.mark.parametrize(("name", "expected"), [("stream", ["orders", "returns"]), ("node", ["a", "b"])])
def test_variables_list_streams_and_nodes(name: str, expected: list[str], judged: Judged) -> None:
    """Those that the store has."""
    (variable,) = [one for one in BOARD["templating"]["list"] if one["name"] == name]
    assert [found for (found,) in judged.ask(variable["query"])] == expected
