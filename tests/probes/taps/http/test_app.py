"""Tests of the tap by HTTP: what is posted is taken as it is meant, or it is said what is wrong with it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hopwatch.probes.contract.batch import BatchKind, WireIdKind
from hopwatch.probes.contract.envelope import encode
from hopwatch.probes.contract.ids import id_bytes
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.http.problems import MAX_FAULTS
from hopwatch.probes.sinks.spool import SpoolSink
from hopwatch.probes.taps.http import books
from hopwatch.testing import EPOCH_US, Observation
from tests.probes.taps.http.bodies import JSON, trickle
from tests.support.batches import HEARTBEAT, TWO_PASSED
from tests.support.examples import examples
from tests.support.tap_client import GOOD, ONE, PATH, Asked, told

MESSAGE = uuid.UUID(int=7)
ISO = "2023-11-14T22:14:00+00:00"


@pytest.fixture
def tap(tmp_path: Path) -> Iterator[Asked]:
    """Yield an app on a spool."""
    asked = Asked(tmp_path)
    yield asked
    asked.intake.close(bye=False)


def body(**more: object) -> dict[str, Any]:
    """Return a good body with one observation that has other fields."""
    return GOOD | {"observations": [ONE | more]}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, Observation(id_bytes("a"), EPOCH_US, EPOCH_US, None)),
        ({"id": str(MESSAGE)}, Observation(MESSAGE.bytes, EPOCH_US, EPOCH_US, None)),
        ({"id": 2**128 - 1}, Observation(b"\xff" * 16, EPOCH_US, EPOCH_US, None)),
        ({"event_time": ISO}, Observation(id_bytes("a"), EPOCH_US, EPOCH_US, None)),
        ({"stamp": "out"}, Observation(id_bytes("a"), EPOCH_US, None, EPOCH_US)),
        ({"stamp": "both"}, Observation(id_bytes("a"), EPOCH_US, EPOCH_US, EPOCH_US)),
        ({"at": EPOCH_US - 9}, Observation(id_bytes("a"), EPOCH_US, EPOCH_US - 9, None)),
        ({"at": 5, "stamp": "out"}, Observation(id_bytes("a"), EPOCH_US, None, 5)),
        ({"at": 5, "stamp": "both"}, Observation(id_bytes("a"), EPOCH_US, 5, 5)),
        (
            {"at": ISO, "out_at": EPOCH_US + 9, "stamp": "both"},
            Observation(id_bytes("a"), EPOCH_US, EPOCH_US, EPOCH_US + 9),
        ),
        ({"outcome": "filtered"}, Observation(id_bytes("a"), EPOCH_US, EPOCH_US, None, 1)),
        (
            {"outcome": "rejected", "reason": "no price"},
            Observation(id_bytes("a"), EPOCH_US, EPOCH_US, None, 2, "no price"),
        ),
        (
            {"outcome": "deferred", "reason": "busy", "until": EPOCH_US + 9},
            Observation(id_bytes("a"), EPOCH_US, EPOCH_US, None, 3, "busy", EPOCH_US + 9),
        ),
    ],
)
def test_an_observation_is_taken_as_it_is_meant(tap: Asked, more: dict[str, Any], expected: Observation) -> None:
    """Ids and times in every form, each stamp, each outcome, moments of its own or now."""
    answer = tap.ask("POST", json=body(**more))
    assert (answer.status_code, answer.json()) == (202, {"observations": 1})
    assert tap.said() == [expected]


def test_ids_are_sent_as_they_were_given(tap: Asked) -> None:
    """A batch a kind, with the texts of those that are texts."""
    rows = [ONE | {"id": one} for one in ("order 1", str(MESSAGE), 7, "größe")]
    assert tap.ask("POST", json=GOOD | {"observations": rows}).status_code == 202
    ((_, batches),) = tap.batches().items()
    assert [(batch.id_kind, batch.id_texts.decode()) for batch in batches if batch.count] == [
        (WireIdKind.UUID, ""), (WireIdKind.INT, ""), (WireIdKind.TEXT, "order 1größe"),
    ]  # fmt: skip


def test_moments_of_the_client_s_own_stay_as_they_are(tap: Asked) -> None:
    """Though the tap has completed later ones since; each node has one sender, that says hello and no bye."""
    for at in (EPOCH_US + 5, EPOCH_US + 1):
        tap.clock.advance(1)
        assert tap.ask("POST", json=body(at=at)).status_code == 202
    assert tap.ask("POST", json=GOOD | {"node": "other"}).status_code == 202
    other, router = sorted(tap.batches().items())
    assert other[0].startswith("orders.other.")
    assert [(batch.seq, batch.kind, batch.complete_through_us) for batch in router[1]] == [
        (0, BatchKind.HEARTBEAT, EPOCH_US + 1_000_000), (1, BatchKind.OBSERVATIONS, EPOCH_US + 1_000_000),
        (2, BatchKind.OBSERVATIONS, EPOCH_US + 2_000_000), (3, BatchKind.HEARTBEAT, EPOCH_US + 2_000_000),
    ]  # fmt: skip


def test_observations_of_many_windows_are_all_taken(tap: Asked) -> None:
    """Observations of many windows and reasons are all taken in one request."""
    rows = [ONE | {"id": at, "event_time": EPOCH_US + at % 3 * 60_000_000} for at in range(50)]
    rows += [ONE | {"id": at, "outcome": "filtered", "reason": f"reason {at % 5}"} for at in range(50, 100)]
    assert tap.ask("POST", json=GOOD | {"observations": rows}).json() == {"observations": 100}
    said = tap.said()
    assert {int.from_bytes(row.message_id) for row in said} == set(range(100))
    assert {row.reason for row in said} == {None, *(f"reason {at}" for at in range(5))}


@pytest.mark.parametrize("kind", ["application/octet-stream", "Application/Vnd.Hopwatch.Batch; v=1"])
def test_a_record_is_passed_on_as_it_is(tap: Asked, kind: str) -> None:
    """A posted record goes to the sink unchanged, with its own probe, epoch and number."""
    for record in (TWO_PASSED, HEARTBEAT):
        answer = tap.ask("POST", content=encode(record), headers={"content-type": kind})
        assert (answer.status_code, answer.json()) == (202, {"observations": record.count})
    tap.clock.advance(1)
    tap.intake.tick()
    (batches,) = tap.batches().values()
    assert batches == [TWO_PASSED, HEARTBEAT]
    assert (tap.intake.records, tap.intake.observations) == (2, 0)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"content": b"{", "headers": JSON}, (400, "not-json", [])),
        ({"content": b"", "headers": JSON}, (400, "not-json", [])),
        ({"content": b"\xff", "headers": JSON}, (400, "not-json", [])),
        ({"content": b"[" * 5_000, "headers": JSON}, (400, "not-json", [])),
        ({"json": []}, (422, "bad-observations", [""])),
        ({"json": {}}, (422, "bad-observations", ["/stream", "/node", "/observations"])),
        ({"json": GOOD | {"more": 1}}, (422, "bad-observations", ["/more"])),
        ({"json": GOOD | {"stream": "or ders"}}, (422, "bad-observations", ["/stream"])),
        ({"json": GOOD | {"stream": "_hopwatch"}}, (422, "bad-observations", ["/stream"])),
        ({"json": GOOD | {"node": "x" * 129}}, (422, "bad-observations", ["/node"])),
        ({"json": GOOD | {"node": "x\n"}}, (422, "bad-observations", ["/node"])),
        ({"json": GOOD | {"observations": []}}, (422, "bad-observations", ["/observations"])),
        ({"json": GOOD | {"observations": [7, 8]}}, (422, "bad-observations", ["/observations/0", "/observations/1"])),
        ({"json": body(id="")}, (422, "bad-observations", ["/observations/0/id"])),
        ({"json": body(id=-1)}, (422, "bad-observations", ["/observations/0/id"])),
        ({"json": body(id=2**128)}, (422, "bad-observations", ["/observations/0/id"])),
        ({"json": body(id=True)}, (422, "bad-observations", ["/observations/0/id"])),
        ({"json": body(id="x" * 1_025)}, (422, "bad-observations", ["/observations/0/id"])),
        ({"json": body(event_time="2023-11-14T22:14:00")}, (422, "bad-observations", ["/observations/0/event_time"])),
        ({"json": body(event_time=EPOCH_US // 1_000)}, (422, "bad-observations", ["/observations/0/event_time"])),
        ({"json": body(event_time=1.5)}, (422, "bad-observations", ["/observations/0/event_time"])),
        ({"json": body(event_time=2**53)}, (422, "bad-observations", ["/observations/0/event_time"])),
        ({"json": body(event_time=10**400)}, (422, "bad-observations", ["/observations/0/event_time"])),
        ({"json": body(at=-1)}, (422, "bad-observations", ["/observations/0/at"])),
        ({"json": body(stamp="inside")}, (422, "bad-observations", ["/observations/0/stamp"])),
        ({"json": body(outcome="lost")}, (422, "bad-observations", ["/observations/0/outcome"])),
        ({"json": body(outcome="filtered", stamp="both")}, (422, "bad-observations", ["/observations/0"])),
        ({"json": body(outcome="deferred", stamp="both", until=5)}, (422, "bad-observations", ["/observations/0"])),
        ({"json": body(outcome="deferred")}, (422, "bad-observations", ["/observations/0"])),
        ({"json": body(outcome="filtered", until=5)}, (422, "bad-observations", ["/observations/0"])),
        ({"json": body(outcome="deferred", until="soon")}, (422, "bad-observations", ["/observations/0/until"])),
        ({"json": body(reason="none")}, (422, "bad-observations", ["/observations/0"])),
        ({"json": body(outcome="filtered", reason="x" * 65)}, (422, "bad-observations", ["/observations/0/reason"])),
        ({"json": body(out_at=5)}, (422, "bad-observations", ["/observations/0"])),
        ({"content": b"x"}, (415, "unknown-type", [])),
        ({"content": b"x", "headers": {"content-type": "text/plain"}}, (415, "unknown-type", [])),
        ({"content": b"x", "headers": JSON | {"content-encoding": "br"}}, (415, "unknown-type", [])),
        ({"content": b"x", "headers": JSON | {"content-encoding": "gzip"}}, (400, "not-gzip", [])),
        ({"content": b"x", "headers": {"content-type": "application/octet-stream"}}, (422, "record-bad_marker", [])),
        ({"content": b"x" * (4 * 1024 * 1024 + 1), "headers": JSON}, (413, "body-too-large", [])),
    ],
)
def test_a_bad_request_is_told_with_its_place(
    tap: Asked, request_: dict[str, Any], expected: tuple[int, str, list[str]]
) -> None:
    """In the form of RFC 9457, and nothing of it is stamped."""
    assert told(tap.ask("POST", **request_)) == expected
    assert tap.said() == []


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        (b"\x81" + bytes(32) + encode(TWO_PASSED)[33:], "record-unknown_schema"),
        (encode(TWO_PASSED)[:-3], "record-truncated"),
    ],
)
def test_a_record_that_is_none_is_refused(tap: Asked, batch: bytes, kind: str) -> None:
    """Before the sink sees it; and that of the monitor's own stream too."""
    headers = {"content-type": "application/octet-stream"}
    assert told(tap.ask("POST", content=batch, headers=headers)) == (422, kind, [])


def test_the_monitor_s_own_stream_is_nobody_else_s(tap: Asked) -> None:
    """A pulse that others could send would prove nothing."""
    record = encode(replace(HEARTBEAT, stream="_hopwatch"))
    answer = tap.ask("POST", content=record, headers={"content-type": "application/octet-stream"})
    assert told(answer) == (422, "record-bad_name", [])


def test_so_many_errors_are_told_and_no_more(tap: Asked) -> None:
    """A body that is wrong throughout is not answered at length."""
    rows = [ONE | {"reason": "none"}] * 1_000
    assert len(told(tap.ask("POST", json=GOOD | {"observations": rows}))[2]) == MAX_FAULTS


def test_there_is_a_bound_on_nodes(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a thread; those that are there already go on."""
    monkeypatch.setattr(books, "MAX_NODES", 1)
    assert tap.ask("POST", json=GOOD).status_code == 202
    assert told(tap.ask("POST", json=GOOD | {"node": "other"})) == (422, "too-many-nodes", [])
    assert tap.ask("POST", json=GOOD).status_code == 202


def test_a_sink_that_takes_nothing_is_told_and_loses_nothing(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client comes again with the same, and nothing counts as dropped; meanwhile the tap is not ready."""
    headers = {"content-type": "application/octet-stream"}
    assert tap.ask("POST", json=GOOD).status_code == 202
    with monkeypatch.context() as patch:
        patch.setattr(SpoolSink, "send", lambda *_: False)
        for answer in (tap.ask("POST", json=GOOD), tap.ask("POST", content=encode(TWO_PASSED), headers=headers)):
            assert told(answer) == (503, "sink-full", [])
            assert answer.headers["retry-after"] == "1"
        assert told(tap.ask("GET", "/readyz")) == (503, "sink-down", [])
    tap.clock.advance(2)
    assert tap.ask("GET", "/readyz").status_code == 200
    assert tap.ask("POST", json=GOOD).status_code == 202
    assert tap.ask("POST", content=encode(TWO_PASSED), headers=headers).status_code == 202
    own = next(batches for name, batches in tap.batches().items() if name.startswith("orders.router."))
    assert [(batch.seq, batch.count, batch.drops) for batch in own] == [(0, 0, ()), (1, 1, ()), (2, 1, ()), (3, 0, ())]


def test_records_that_fail_after_they_were_taken_are_told(
    tap: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody else would hear of it."""
    monkeypatch.setattr(SpoolSink, "failed", lambda _: [encode(TWO_PASSED)] * 2)
    tap.intake.tick()
    assert "2 records that were passed on did not reach spool:" in capsys.readouterr().out


def test_a_sink_that_cannot_be_written_is_not_ready(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the tap lives."""

    def fail(_: object) -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(SpoolSink, "check", fail)
    answer = tap.ask("GET", "/readyz")
    assert told(answer) == (503, "sink-down", [])
    assert "disk on fire" in answer.json()["detail"]
    assert tap.ask("GET", "/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("POST", "/v1/none", 404), ("GET", PATH, 405), ("PUT", PATH, 405)]
)
def test_what_is_not_there_is_told(tap: Asked, method: str, path: str, status: int) -> None:
    """With where observations go."""
    answer = tap.ask(method, path)
    assert told(answer)[0] == status
    assert "observations go to POST /v1/observations" in answer.json()["detail"]


def test_our_own_fault_is_a_problem_too(tap: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error is a problem of status 500 without any inner detail."""

    def fail(_: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(tap.intake, "check", fail)
    answer = tap.ask("GET", "/readyz")
    assert told(answer) == (500, "fault", [])
    assert "secret" not in answer.text


def test_a_body_in_parts_is_one_body(tap: Asked) -> None:
    """Its length need not be told before."""
    data = json.dumps(GOOD).encode()
    assert tap.ask("POST", content=trickle(data[:9], data[9:]), headers=JSON).status_code == 202
    large = trickle(*[b"x" * 1024 * 1024] * 5)
    assert told(tap.ask("POST", content=large, headers=JSON)) == (413, "body-too-large", [])


def test_a_slow_body_is_cut(tmp_path: Path) -> None:
    """At a deadline that no trickle moves."""
    tap = Asked(tmp_path, Limits(body_s=0.01))
    answer = tap.ask("POST", content=trickle(*[b" "] * 100, wait_s=0.005), headers=JSON)
    assert told(answer) == (408, "slow-body", [])


def test_every_answer_is_documented(tap: Asked) -> None:
    """With both forms of a body, and a problem for each status."""
    document = tap.ask("GET", "/openapi.json").json()
    post = document["paths"][PATH]["post"]
    assert set(post["responses"]) == {"202", "207", "400", "408", "413", "415", "422", "503"}
    assert set(post["requestBody"]["content"]) == {
        "application/json", "application/octet-stream", "application/vnd.hopwatch.batch",
    }  # fmt: skip
    assert "$ref" not in json.dumps(post["requestBody"])


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
OBSERVATION = st.fixed_dictionaries(
    {"id": ANYTHING, "event_time": ANYTHING, "stamp": st.sampled_from(["in", "out", "both"]) | ANYTHING},
    optional={"outcome": ANYTHING, "reason": ANYTHING, "until": ANYTHING, "at": ANYTHING, "out_at": ANYTHING},
)
BODY = st.fixed_dictionaries(
    {"stream": st.just("orders") | ANYTHING, "node": st.just("router") | ANYTHING},
    optional={"observations": st.lists(OBSERVATION, max_size=3) | ANYTHING},
)
KIND = st.sampled_from(["application/json", "application/octet-stream", "text/plain", ""])


@given(st.binary() | BODY.map(lambda one: json.dumps(one).encode()) | st.just(encode(TWO_PASSED)), KIND)
def test_no_request_makes_a_fault(tmp_path_factory: pytest.TempPathFactory, content: bytes, kind: str) -> None:
    """Any body of any type is taken or refused, and causes no internal error."""
    tap = Asked(tmp_path_factory.getbasetemp())
    try:
        assert tap.ask("POST", content=content, headers={"content-type": kind}).status_code in {202, 207, 400, 415, 422}
    finally:
        tap.intake.close(bye=False)


@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
def test_no_request_of_the_document_makes_a_fault(tap: Asked, mode: schemathesis.GenerationMode) -> None:
    """Each request made from the OpenAPI document, valid or not, has an answer that the document lists."""
    document = schemathesis.openapi.from_asgi("/openapi.json", tap.app)

    @settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
    @given(document[PATH]["POST"].as_strategy(generation_mode=mode))
    def holds(case: schemathesis.Case[Any]) -> None:
        assert case.call().status_code in {202, 207, 400, 415, 422}

    holds()
