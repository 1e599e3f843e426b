"""Tests of markers in the API: who may set one, and what is refused."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from hopwatch.api.readers import Reader
from hopwatch.monitor.results import format_iso
from tests.api.asked_api import NOW_US, AskedApi
from tests.support.workspace import Workspace, one_of_ten_lost

DEPLOY: dict[str, Any] = {"text": "deploy 1.4.2", "stream": "orders", "labels": {"version": "1.4.2"}}


def build_reader(name: str, *streams: str, may_mark: bool = True) -> Reader:
    """Return a reader whose token is its name."""
    return Reader(name, (sha256(name.encode()).digest(),), frozenset(streams), may_mark=may_mark)


@pytest.fixture
def api(tmp_path: Path) -> AskedApi:
    """Return the API over a store with one lossy window, with three readers."""
    readers = build_reader("ci"), build_reader("orders-ci", "orders"), build_reader("billing", may_mark=False)
    return AskedApi(Workspace(tmp_path).configure().watch(*one_of_ten_lost()), *readers)


def post(api: AskedApi, who: str, **body: object) -> httpx.Response:
    """Send a marker with the token of a reader."""
    return api.get("/v1/markers", method="POST", json=body, headers={"authorization": f"Bearer {who}"})


def listed(api: AskedApi, who: str = "ci", **query: str) -> list[dict[str, Any]]:
    """Return the markers."""
    answer = api.get("/v1/markers", params=query, headers={"authorization": f"Bearer {who}"})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["markers"])


def test_a_program_marks_a_moment(api: AskedApi) -> None:
    """Now by default, and in the name of the reader; it is listed with its stream, and one of all streams with each."""
    answer = post(api, "ci", **DEPLOY)
    assert answer.status_code == 201
    first = DEPLOY | {"number": 1, "at": format_iso(NOW_US), "by": "ci"}
    assert answer.json() == first
    of_all = post(api, "ci", text="restart", at="2026-01-01T00:30:00").json()
    assert of_all == {
        "number": 2, "at": "2026-01-01T00:30:00Z", "stream": None, "text": "restart", "labels": {}, "by": "ci",
    }  # fmt: skip
    assert listed(api) == listed(api, stream="orders") == listed(api, "orders-ci", stream="orders") == [of_all, first]
    assert listed(api, **{"from": "2026-01-01T00:30:01Z"}) == [first]
    assert listed(api, stream="payments", to="2026-01-01T00:30:01Z") == [of_all]


@pytest.mark.parametrize(
    ("who", "body", "status", "told"),
    [
        ("billing", DEPLOY, 403, "billing may not set markers: set may_mark = true in [api.readers.NAME]"),
        ("orders-ci", {"text": "x"}, 403, "orders-ci may read orders, not all streams: name one"),
        ("orders-ci", DEPLOY | {"stream": "payments"}, 403, "not 'payments'"),
        ("nobody", DEPLOY, 401, ""),
        ("ci", DEPLOY | {"stream": "nothing"}, 404, "there is no stream 'nothing'"),
        ("ci", {"text": ""}, 422, "the request is invalid"),
        ("ci", {"text": "a\nb"}, 422, "one line of printable text"),
        ("ci", {"text": "x", "at": "soon"}, 422, "at is a time such as"),
        ("ci", {"text": "x", "labels": {str(one): "" for one in range(9)}}, 422, "the request is invalid"),
        ("ci", {"text": "x", "labels": {"version": ""}}, 422, "one line of printable text"),
        ("ci", {"text": "x", "by": "somebody else"}, 422, "the request is invalid"),
        ("ci", {"text": "x", "labels": {"a": "x" * 20_000}}, 413, ""),
    ],
)
def test_what_may_not_be_marked_is_refused(
    api: AskedApi, who: str, body: dict[str, object], status: int, told: str
) -> None:
    """With what is to be done about it; nothing is marked."""
    answer = post(api, who, **body)
    assert answer.status_code == status
    assert told in answer.json()["detail"]
    assert listed(api) == []


def test_without_readers_nobody_marks(tmp_path: Path) -> None:
    """Anybody reaches an API without tokens, and reads; a page in a browser must not write to it."""
    api = AskedApi(Workspace(tmp_path).configure().watch(*one_of_ten_lost()))
    answer = api.get("/v1/markers", method="POST", json=DEPLOY)
    assert answer.status_code == 403
    assert answer.json()["detail"].startswith("without [api.readers] nobody may set markers: set may_mark = true")
    assert api.json("/v1/markers") == {"markers": []}


def test_a_body_that_is_no_json_is_refused(api: AskedApi) -> None:
    """In one line, as all problems are."""
    answer = api.get("/v1/markers", method="POST", content=b"{", headers={"authorization": "Bearer ci"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
