"""Tests of producers: authentication, streams and quotas."""

from __future__ import annotations

import base64
import time
from hashlib import sha256
from typing import Any, Final

import orjson
import pytest

from hopwatch.gate.producers import QUOTA_PERIOD_S, Producer
from hopwatch.probes.http.problems import HttpProblem
from tests.support.gate_client import EVENTS, GOOD, ORDER, AtEntrance
from tests.support.tap_client import told

OLD, NEW, OTHER = "old-token", "new-token", "other-token"


def hashed(*tokens: str) -> tuple[bytes, ...]:
    """Return the hashes of tokens."""
    return tuple(sha256(token.encode()).digest() for token in tokens)


def bearer(token: str) -> dict[str, str]:
    """Return the header with a token."""
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def gate() -> AtEntrance:
    """Return an entrance for two producers, one of them in the midst of a change of his token."""
    producers = [Producer("shop", hashed(OLD, NEW)), Producer("other", hashed(OTHER), frozenset({"bills"}))]
    found = AtEntrance(producers=producers, schema=None)
    assert found.ask("PUT", "/subjects/orders/schemas", ORDER, headers=bearer(OLD)).status_code == 201
    return found


@pytest.fixture
def _time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no quota come back while a slow machine spends it."""
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)


def put(gate: AtEntrance, headers: dict[str, str]) -> int:
    """Send one event, and return the status."""
    return gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD, headers=headers).status_code


def test_both_tokens_of_a_producer_are_valid(gate: AtEntrance) -> None:
    """As a bearer's, or as the password of a user, which is what clients of Confluent's registry send."""
    assert [put(gate, bearer(token)) for token in (OLD, NEW)] == [201, 201]
    basic = base64.b64encode(f"anybody:{NEW}".encode()).decode()
    assert put(gate, {"authorization": f"basic {basic}"}) == 201


@pytest.mark.parametrize(
    "said", ["", "Bearer", "Bearer x", f"Bearer {OLD}x", f"Token {OLD}", "Basic ???", f"Basic {OLD}"]
)
def test_who_is_not_known_gets_nowhere(gate: AtEntrance, said: str) -> None:
    """Neither in nor at the schemas; the answer says what to send."""
    for method, path in (("PUT", f"{EVENTS}/{gate.new_id()}"), ("GET", "/subjects"), ("GET", "/nix")):
        answer = gate.ask(
            method, path, GOOD if method == "PUT" else None, headers={"authorization": said} if said else {}
        )
        assert told(answer)[:2] == (401, "unknown-producer")
        assert answer.headers["www-authenticate"] == 'Bearer realm="hopwatch"'
        assert answer.json()["detail"].endswith(
            "send one in the header authorization, as Bearer TOKEN or as the password of Basic"
        )
    assert gate.stamped() == []


def test_anybody_may_ask_how_it_is(gate: AtEntrance) -> None:
    """And what there is to ask for."""
    assert [gate.ask("GET", path).status_code for path in ("/healthz", "/readyz", "/openapi.json")] == [200, 200, 200]


def test_a_producer_keeps_to_his_streams(gate: AtEntrance) -> None:
    """Another one is 403, with those that are his."""
    answer = gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", GOOD, headers=bearer(OTHER))
    assert told(answer)[:2] == (403, "other-stream")
    assert answer.json()["detail"] == "other may send to bills, not to 'orders'"


def test_who_sent_is_kept_beside_what_was_rejected(gate: AtEntrance) -> None:
    """By name, and never by token."""
    gate.ask("PUT", f"{EVENTS}/{gate.new_id()}", {}, headers=bearer(NEW))
    (kept,) = gate.refused()
    assert kept.producer == "shop"


@pytest.mark.usefixtures("_time_stands_still")
@pytest.mark.parametrize(
    ("producer", "detail"),
    [
        (Producer("shop", hashed(OLD), events_per_second=3), "shop may send 3 events a second: retry later"),
        (Producer("shop", hashed(OLD), bytes_per_second=200), "shop may send 200 bytes a second: retry later"),
    ],
)
def test_more_than_a_quota_comes_later(producer: Producer, detail: str) -> None:
    """429 with when to come again; others are not touched by it, and nothing of it is stamped."""
    gate = AtEntrance(producers=[producer, Producer("other", hashed(OTHER))], schema=None)
    gate.ask("PUT", "/subjects/orders/schemas", ORDER, headers=bearer(OLD))
    batch = [gate.event() for _ in range(20)]
    assert gate.ask("POST", EVENTS, batch, headers=bearer(OLD)).status_code == 201
    answer = gate.ask("POST", EVENTS, [gate.event() for _ in range(20)], headers=bearer(OLD))
    assert told(answer)[:2] == (429, "over-quota")
    assert answer.json()["detail"] == detail
    assert 1 <= int(answer.headers["retry-after"]) <= QUOTA_PERIOD_S
    assert put(gate, bearer(OTHER)) == 201
    assert len(gate.stamped()) == 21


def test_a_batch_that_no_quota_ever_lets_through_is_told(gate: AtEntrance) -> None:
    """Come again would be no advice."""
    with pytest.raises(HttpProblem) as caught:
        gate.gate.producers.charge_stream(Producer("shop", (), events_per_second=2), "orders", 21, 1)
    assert (caught.value.status, caught.value.kind) == (413, "over-quota")
    assert caught.value.detail == (
        "shop may send 2 events a second, and these 21 are more than 10 s of that: send them in parts"
    )


WRITES: Final = [
    ("PUT", "/subjects/orders/schemas", ORDER),
    ("POST", "/subjects/orders/versions", {"schema": orjson.dumps(ORDER).decode()}),
    ("PUT", "/config/orders", {"compatibility": "NONE"}),
    ("PUT", "/config", {"compatibility": "NONE"}),
]
"""All that changes what is registered."""


@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=[f"{one[0]} {one[1]}" for one in WRITES])
def test_the_schemas_of_others_are_not_a_producers(method: str, path: str, body: Any) -> None:  # noqa: ANN401 - JSON
    """A producer with streams of his own may change their subjects alone, and read all of them."""
    bills = Producer("other", hashed(OTHER), frozenset({"bills"}), subjects=frozenset({"bills", "x"}))
    gate = AtEntrance(producers=[Producer("shop", hashed(OLD)), bills], schema=None)
    assert gate.ask("PUT", "/subjects/orders/schemas", ORDER, headers=bearer(OLD)).status_code == 201
    before = (dict(gate.shelf.versions), dict(gate.shelf.levels))
    answer = gate.ask(method, path, body, headers=bearer(OTHER))
    assert told(answer)[:2] == (403, "other-subject")
    what = "those of 'orders'" if "orders" in path else "the level of all subjects"
    assert answer.json()["detail"] == f"other may change the schemas of bills, x, not {what}"
    assert (gate.shelf.versions, gate.shelf.levels) == before
    own = path.replace("orders", "bills")
    if own != path:
        assert gate.ask(method, own, body, headers=bearer(OTHER)).is_success
    assert gate.ask(method, path, body, headers=bearer(OLD)).is_success
    for read in ("/subjects", "/subjects/orders/schemas", "/config"):
        assert gate.ask("GET", read, headers=bearer(OTHER)).status_code == 200


def test_every_route_that_changes_what_is_registered_is_held(gate: AtEntrance) -> None:
    """A route that is new stands here, or only reads."""
    asking = {"/subjects/{subject}", "/compatibility/subjects/{subject}/versions"}
    asking.add("/compatibility/subjects/{subject}/versions/{version}")
    paths = gate.ask("GET", "/openapi.json").json()["paths"]
    found = {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if method != "get" and path not in asking and not path.startswith("/streams/")
    }
    assert found == {(method, path.replace("orders", "{subject}")) for method, path, _ in WRITES}


@pytest.mark.usefixtures("_time_stands_still")
def test_requests_to_the_registry_cost_what_events_cost() -> None:
    """Reads too, one event each, and their bodies: whoever asks all day keeps nobody out."""
    limited = Producer("shop", hashed(OLD), events_per_second=1, bytes_per_second=100)
    gate = AtEntrance(producers=[limited, Producer("other", hashed(OTHER))], schema=None)
    large = {"type": "record", "name": "R", "doc": "x" * 1_000, "fields": []}
    assert told(gate.ask("PUT", "/subjects/orders/schemas", large, headers=bearer(OLD)))[:2] == (413, "over-quota")
    # Of a request that has no body by its method none is read, whatever comes.
    statuses = [gate.ask("GET", "/subjects", large, headers=bearer(OLD)).status_code for _ in range(QUOTA_PERIOD_S + 1)]
    assert statuses == [200] * QUOTA_PERIOD_S + [429]
    assert told(gate.ask("PUT", "/subjects/orders/schemas", ORDER, headers=bearer(OLD)))[:2] == (429, "over-quota")
    assert gate.ask("GET", "/subjects", headers=bearer(OTHER)).status_code == 200
