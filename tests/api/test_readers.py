"""Tests of readers: tokens, their streams, and their end."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from hopwatch.api.readers import Reader
from tests.api.asked_api import NOW_US, AskedApi
from tests.support.workspace import Workspace, one_of_ten_lost


def reader(name: str, *streams: str, expires_us: int | None = None) -> Reader:
    """Return a reader whose token is its name."""
    return Reader(name, (sha256(name.encode()).digest(),), frozenset(streams), expires_us)


def bearer(token: str) -> dict[str, str]:
    """Return the header with a token."""
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def api(tmp_path: Path) -> AskedApi:
    """Return the API for somebody who may read all, one who may read one stream, another one, and one who is late."""
    workspace = Workspace(tmp_path).configure().watch(*one_of_ten_lost())
    known = reader("all"), reader("own", "orders"), reader("other", "bills"), reader("late", expires_us=NOW_US)
    return AskedApi(workspace, *known)


@pytest.mark.parametrize("path", ["/v1/streams", "/v1/nix", "/v1/changes"])
def test_who_is_not_known_reads_nothing(api: AskedApi, path: str) -> None:
    """Without a token, with a wrong one, and with one that has expired, each told apart in one line."""
    told = [api.get(path, headers=headers) for headers in ({}, bearer("x"), bearer("late"))]
    assert [one.status_code for one in told] == [401, 401, 401]
    words = [one.json()["detail"].partition(":")[0] for one in told]
    assert words[:2] == ["there is no token", "the token is not known"]
    assert told[2].json()["detail"].startswith("the token of late expired at 2026-01-01T01:00:00Z: send one")


def test_a_token_is_good_until_its_last_moment(api: AskedApi) -> None:
    """A microsecond before its end it is."""
    api.clock.advance(-1e-6)
    assert api.get("/v1/streams", headers=bearer("late")).status_code == 200


def test_health_and_document_are_open(api: AskedApi) -> None:
    """Both say nothing of anybody's messages."""
    assert [api.get(path).status_code for path in ("/healthz", "/readyz", "/openapi.json")] == [200, 200, 200]


SCOPED = (
    "/v1/streams/orders/windows",
    "/v1/streams/orders/windows/2026-01-01T00:00:00Z",
    "/v1/streams/orders/windows/2026-01-01T00:00:00Z/lost/b",
    "/v1/streams/orders/nodes/b",
    "/v1/streams/orders/hours",
    "/v1/streams/orders/days",
    "/v1/messages/1?stream=orders",
    "/v1/incidents?stream=orders",
    "/v1/outliers?stream=orders",
    "/v1/probes?stream=orders",
    "/v1/completeness?contract=strict&until=2026-01-01T00:01:00Z",
)


@pytest.mark.parametrize("path", SCOPED)
def test_a_reader_of_some_streams_reads_these(api: AskedApi, path: str) -> None:
    """Another stream is refused, and all streams at once are."""
    assert [api.get(path, headers=bearer(name)).status_code for name in ("all", "own", "other")] == [200, 200, 403]
    whole = path.replace("?stream=orders", "")
    if whole != path:
        refused = api.get(whole, headers=bearer("own"))
        assert refused.status_code == 403
        assert refused.json()["detail"] == "own may read orders, not all streams: name one"


def test_streams_are_listed_as_far_as_they_may_be_read(api: AskedApi) -> None:
    """And the monitor's accounts, which are of all, are for readers of all."""
    listed = {name: api.get("/v1/streams", headers=bearer(name)).json()["streams"] for name in ("all", "own", "other")}
    assert {name: len(found) for name, found in listed.items()} == {"all": 1, "own": 1, "other": 0}
    assert [api.get("/v1/accounts", headers=bearer(name)).status_code for name in ("all", "own")] == [200, 403]


def test_contracts_of_other_streams_are_not_named(api: AskedApi) -> None:
    """A reader of some streams learns the names of contracts of these alone."""
    asked = "/v1/completeness?contract=nix&until=2026-01-01T00:01:00Z"
    told = {name: api.get(asked, headers=bearer(name)).json()["detail"] for name in ("all", "own", "other")}
    named = {name: line.partition("has: ")[2] for name, line in told.items()}
    assert named == {"all": "strict, loose, arrivals", "own": "strict, loose, arrivals", "other": "none"}
