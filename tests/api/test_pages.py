"""Tests of the API's results: those of ``report --json`` field for field, page by page, and nothing beside them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hopwatch.client import results
from hopwatch.client.results_client import parse_record
from hopwatch.monitor.results import CountsRollUp, NodeCounts, ServerCount
from tests.api.asked_api import AskedApi
from tests.support.recent import recent_figures, save_recent
from tests.support.report import reported
from tests.support.spool import at_us, observation_batch, window_ms
from tests.support.versions import write_versions
from tests.support.workspace import Workspace, one_of_ten_lost

WINDOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Return a store with one window of ten messages, one of them lost, and two idle ones behind it."""
    later = observation_batch(range(20, 25), seq=2, window_start_ms=window_ms(2), complete_through_us=at_us(401))
    return Workspace(tmp_path).configure().watch(*one_of_ten_lost(), later)


@pytest.fixture
def api(workspace: Workspace) -> AskedApi:
    """Return the API over it."""
    return AskedApi(workspace)


def test_windows_are_those_of_the_report(api: AskedApi, workspace: Workspace) -> None:
    """Field for field, of one page and of pages of one window each."""
    told = reported(workspace.store_url)["streams"][0]
    whole = api.json("/v1/streams/orders/windows")
    assert (whole["windows"], whole["next"]) == (told["windows"], None)
    assert len(told["windows"]) > 2
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = api.json("/v1/streams/orders/windows", limit=1, **cursor)
        found += page["windows"]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert found == told["windows"]
    assert [api.json(f"/v1/streams/orders/windows/{one['window_start']}") for one in found] == found


def test_a_node_is_that_of_the_report(api: AskedApi, workspace: Workspace) -> None:
    """With what its window is."""
    windows = reported(workspace.store_url)["streams"][0]["windows"]
    named = ("window_start", "status", "verdict")
    expected = [{name: one[name] for name in named} | one["nodes"][1] for one in windows]
    assert api.json("/v1/streams/orders/nodes/b")["windows"] == expected


def test_a_comparison_is_that_of_the_command(
    api: AskedApi, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the newest version with all others, or of what is asked for."""
    write_versions(workspace.store_url, 8, (9_000, 0, 450), (1_000, 30, 50))
    path, asked = "/v1/streams/orders/nodes/b/comparison", ("compare", "--stream", "orders", "--node", "b", "--json")
    assert workspace.run(*asked) == 1
    assert json.loads(capsys.readouterr().out) == api.json(path)
    assert workspace.run(*asked, "--baseline", "1", "--max-loss-increase", "0.1", "--to", "2026-01-01T00:07:00Z") == 0
    found = api.json(path, baseline="1", max_loss_increase=0.1, to="2026-01-01T00:07:00Z")
    assert json.loads(capsys.readouterr().out) == found
    assert (found["windows"], found["loss"]["verdict"]) == (6, "NOT_WORSE")


def test_recent_figures_are_those_of_the_command(
    api: AskedApi, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of one stream."""
    save_recent(workspace.store_url, recent_figures())
    assert workspace.run("top", "--json") == 0
    assert json.loads(capsys.readouterr().out)["streams"] == [api.json("/v1/streams/orders/recent")]


def test_lost_ids_are_paged(api: AskedApi) -> None:
    """All that the store has of a node and window, and where the next page begins."""
    path = f"/v1/streams/orders/windows/{WINDOW}/lost/b"
    whole = api.json(path)
    assert (whole["total"], len(whole["ids"]), whole["next"]) == (1, 1, None)
    (lost,) = whole["ids"]
    assert api.json(path, cursor=1)["ids"] == []
    journey = api.json(f"/v1/messages/{lost}")
    assert [(one["node"], one["message_id"]) for one in journey["lost"]] == [("b", lost)]


def test_an_id_may_hold_any_character(api: AskedApi) -> None:
    """A slash too, which parts a path otherwise, and a line feed, which ends it."""
    asked = {"a%2Fb": "a/b", "%2F": "/", "a%3Fb": "a?b", "a%0Ab": "a\nb", "%0A": "\n", "a%0A": "a\n"}
    assert [api.json(f"/v1/messages/{one}")["id"] for one in asked] == list(asked.values())


def test_a_store_that_takes_the_place_of_another_is_read(tmp_path: Path) -> None:
    """Though the API has the file open that was put aside, and its answers have not changed."""
    one, other = Workspace(tmp_path / "one"), Workspace(tmp_path / "other")
    for workspace, batches in ((one, one_of_ten_lost()), (other, [observation_batch(range(3))])):
        workspace.folder.mkdir()
        workspace.configure().watch(*batches)
    api, path = AskedApi(one), "/v1/streams/orders/windows"
    before = api.get(path)
    (one.folder / "store.db").rename(one.folder / "aside.db")
    assert api.get(path).status_code == 503
    (other.folder / "store.db").rename(one.folder / "store.db")
    after = api.get(path, headers={"if-none-match": before.headers["etag"]})
    assert (after.status_code, after.json()["windows"][0]["known"]) == (200, 3)


@pytest.mark.parametrize(
    ("path", "record"),
    [
        ("/v1/streams", results.Streams),
        ("/v1/streams/orders/windows?revisions=true", results.Windows),
        (f"/v1/streams/orders/windows/{WINDOW}", results.Window),
        ("/v1/streams/orders/nodes/b", results.NodeWindows),
        (f"/v1/streams/orders/windows/{WINDOW}/lost/b", results.MissingIds),
        ("/v1/streams/orders/nodes/b/comparison?candidate=2", results.ComparisonFigures),
        ("/v1/streams/orders/recent", results.RecentStream),
        ("/v1/streams/orders/hours", results.Hours),
        ("/v1/streams/orders/days", results.Days),
        ("/v1/messages/1", results.MessageJourney),
        ("/v1/incidents?stream=orders", results.Incidents),
        ("/v1/outliers?notices=true", results.Outliers),
        ("/v1/probes", results.Probes),
        ("/v1/accounts", results.MonitorAccounts),
        ("/v1/completeness?contract=strict&until=2026-01-01T00:01:00Z", results.SpanCompleteness),
    ],
)
def test_answers_are_the_records_that_the_client_has(
    api: AskedApi, workspace: Workspace, path: str, record: type
) -> None:
    """Every answer is a typed record, whose fields are all there; whoever has it already is told so."""
    save_recent(workspace.store_url, recent_figures())
    answer = api.get(path)
    assert answer.status_code == 200, answer.text
    found = parse_record(record, answer.json())
    own = {field.name for field in fields(record)}
    assert set(answer.json()) - own <= {"from"}
    assert found == parse_record(record, answer.json())
    again = api.get(path, headers={"if-none-match": f'"x", {answer.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", answer.headers["etag"])


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (results.CountOfServer, ServerCount),
        (results.CountingNodeFigures, NodeCounts),
        (results.CountingNodeSpan, CountsRollUp),
    ],
)
def test_a_node_that_counts_has_the_same_fields_in_the_client(record: type, shown: type) -> None:
    """Of a window, of each server in it, and of an hour or a day: the same names in the same order."""
    assert [field.name for field in fields(record)] == [field.name for field in fields(shown)]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/v1/streams/nix/windows", 404, "the store has no stream 'nix'"),
        ("/v1/streams/orders/nodes/nix", 404, "the path of orders has no node 'nix' that stamps ids"),
        (f"/v1/streams/orders/windows/{WINDOW}/lost/nix", 404, "the path of orders has no node 'nix' that stamps ids"),
        ("/v1/streams/nix/nodes/b/comparison", 404, "the store has no stream 'nix'"),
        ("/v1/streams/orders/nodes/nix/comparison", 404, "the path of orders has no node 'nix' that stamps ids"),
        ("/v1/streams/orders/nodes/b/comparison", 404, "b of orders has said no value of the label version"),
        ("/v1/streams/orders/nodes/b/comparison?max_loss_increase=2", 422, "the request is invalid: see errors"),
        ("/v1/streams/nix/recent", 404, "the store has no stream 'nix'"),
        ("/v1/streams/orders/recent", 404, "the store has no recent figures of orders: run --once makes none"),
        ("/v1/messages/", 422, "the request is invalid: see errors"),
        ("/v1/streams/orders/windows/2025-01-01T00:00:00Z", 404, "the store has no window of orders that starts at"),
        ("/v1/streams/orders/windows/2026-01-01T00:00:01Z", 422, "a window starts at a whole UTC minute"),
        ("/v1/streams/orders/windows/soon", 422, "the window is a time such as"),
        ("/v1/streams/orders/windows?from=2026-01-02&to=2026-01-01", 422, "let from be the earlier"),
        ("/v1/streams/orders/windows?limit=0", 422, "the request is invalid: see errors"),
        ("/v1/nix", 404, "see /openapi.json"),
    ],
)
def test_bad_requests_have_one_line(api: AskedApi, path: str, status: int, words: str) -> None:
    """A problem that says what was got and what there is."""
    answer = api.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in answer.json()["detail"]


def test_streams_have_the_labels_of_the_configuration(workspace: Workspace) -> None:
    """So programs find the streams of a team."""
    labelled = AskedApi(workspace, more='[streams.orders.labels]\nteam = "payments"\n')
    (orders,) = [one for one in labelled.json("/v1/streams")["streams"] if one["stream"] == "orders"]
    assert orders["labels"] == {"team": "payments"}
    assert parse_record(results.ListedStream, orders).labels == {"team": "payments"}


def test_a_store_that_is_down_is_a_problem_that_passes(api: AskedApi, workspace: Workspace) -> None:
    """With 503 and Retry-After; nothing makes an empty store in its place, and the API is alive."""
    file = workspace.folder / "store.db"
    file.rename(workspace.folder / "elsewhere.db")
    answer = api.get("/v1/streams")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["detail"].startswith("there is no store at sqlite:///")
    assert (api.get("/readyz").status_code, api.get("/healthz").status_code) == (503, 200)
    assert not file.exists()


def test_nothing_but_reading_is_let_in(api: AskedApi) -> None:
    """Other methods are refused, and say which one there is."""
    answer = api.get("/v1/streams", method="POST")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
