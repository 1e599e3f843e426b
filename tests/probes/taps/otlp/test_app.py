"""OTLP tap, asked as SDKs and collectors ask it, and as strangers do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from hopwatch.probes.contract.batch import Batch
from hopwatch.probes.http.limits import Limits
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.http.refusals import NodeName
from hopwatch.probes.taps.otlp import intake
from hopwatch.probes.taps.otlp.app import METRICS_PATH, TRACES_PATH, build_app
from hopwatch.probes.taps.otlp.intake import MISSING, KnownServices, SpanIntake
from hopwatch.probes.taps.otlp.message_matcher import SETTLE_S
from hopwatch.probes.taps.otlp.request_decoder import JSON, PROTOBUF
from hopwatch.probes.taps.otlp.sdk_account import PATIENCE_S
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading
from hopwatch.testing import EPOCH_US, ManualClock, Observation
from tests.support.otlp_requests import build_consumer_span, build_metrics, build_producer_span, build_traces
from tests.support.probe_host import rows, spooled

NOW_NS: Final = EPOCH_US * 1_000
S: Final = 1_000_000_000
ONE, OTHER, OWN, OWN_OTHER = (bytes([number]) * 24 for number in (1, 2, 3, 4))


class Receiver:
    """The app of an intake, on a clock set by hand."""

    def __init__(self, folder: Path, allowed: Collection[NodeName] | None = None, **instances: int) -> None:
        """Open it on a spool."""
        self.spool, self.clock = folder / "spool", ManualClock()
        self.reported: list[str] = []
        around = RunContext(self.reported.append, self.clock)
        self.intake = SpanIntake(f"spool:{self.spool}", around, KnownServices(allowed, instances))

    def ask(self, method: str, path: str, limits: Limits | None = None, **request: Any) -> httpx.Response:  # noqa: ANN401
        """Send a request, and return the answer."""

        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(build_app(self.intake, limits), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://tap") as client:
                return await client.request(method, path, **request)

        return asyncio.run(answer())

    def take(self, *spans: Span, service: str | None = "billing", instance: str | None = "one") -> httpx.Response:
        """Send spans as an SDK does."""
        body = build_traces(spans, service, instance)
        return self.ask("POST", TRACES_PATH, content=body, headers={"content-type": PROTOBUF})

    def read(self, at_s: int, ended: int) -> httpx.Response:
        """Send what an SDK says of itself, so many seconds from the start."""
        self.clock.advance(at_s - (self.clock.us - EPOCH_US) / 1e6)
        reading = SdkReading(NOW_NS + at_s * S, NOW_NS, ended, 0, 0, 0)
        body = build_metrics(reading, "billing", "one")
        return self.ask("POST", METRICS_PATH, content=body, headers={"content-type": PROTOBUF})

    def turn(self, seconds: float) -> None:
        """Let time go on, and everything do what is due."""
        self.clock.advance(seconds)
        self.intake.tick()

    def batches(self) -> list[Batch]:
        """Close the intake without a bye, and return what it sent."""
        self.intake.close()
        return [batch for of_sender in spooled(self.spool).values() for batch in of_sender]

    def stamps(self) -> list[tuple[str, str, Observation]]:
        """Return all stamps that it sent, with stream and node."""
        return [(batch.stream, batch.node, row) for batch in self.batches() for row in rows([batch])]


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    """Yield a tap of one process of billing."""
    made = Receiver(tmp_path, billing=1)
    yield made
    made.intake.close()


def left(context: bytes = ONE, at_ns: int = NOW_NS) -> Span:
    """Return a span that has sent a message."""
    return build_producer_span(context, at_ns, at_ns + 1_000)


def arrived(context: bytes = ONE, own: bytes = OWN, at_ns: int = NOW_NS) -> Span:
    """Return a span that has taken a message in."""
    return build_consumer_span(own, [context], at_ns + 5_000, at_ns + 9_000)


def test_spans_become_stamps(receiver: Receiver) -> None:
    """Each destination is a stream, each service a node of it."""
    assert receiver.take(left(), service="shop").content == b""
    assert receiver.take(arrived()).status_code == 200
    (out, into) = sorted(receiver.stamps(), key=lambda one: one[1], reverse=True)
    assert (out[:2], out[2].event_us, out[2].in_us, out[2].out_us) == (("orders", "shop"), EPOCH_US, None, EPOCH_US + 1)
    assert (into[:2], into[2].in_us, into[2].out_us) == (("orders", "billing"), EPOCH_US + 5, EPOCH_US + 9)
    assert out[2].message_id == into[2].message_id


def test_texts_of_ids_may_stay_here(tmp_path: Path) -> None:
    """The hashes of trace and span are sent alone where the texts are secret."""
    for is_sent in (True, False):
        receiver = Receiver(tmp_path / str(is_sent))
        receiver.intake._id_text = is_sent
        receiver.take(left(), service="shop")
        assert any(batch.id_texts for batch in receiver.batches()) == is_sent


def test_a_span_that_is_sent_again_counts_once(receiver: Receiver) -> None:
    """An SDK sends it again where it got no answer, in whatever batch."""
    receiver.take(left(), left(), service="shop")
    receiver.take(left(), left(OTHER), service="shop")
    assert len(receiver.stamps()) == 2


def test_json_and_gzip_are_taken(receiver: Receiver) -> None:
    """As SDKs of browsers send it, and collectors; the answer is of the same type."""
    span = {
        "traceId": "01" * 16, "spanId": "01" * 8, "name": "orders send", "kind": 4,
        "startTimeUnixNano": str(NOW_NS), "endTimeUnixNano": str(NOW_NS + 1_000),
        "attributes": [{"key": "messaging.destination.name", "value": {"stringValue": "orders"}}],
    }  # fmt: skip
    named = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    body = json.dumps({"resourceSpans": [{"resource": named, "scopeSpans": [{"spans": [span]}]}]}).encode()
    headers = {"content-type": f"{JSON}; charset=utf-8", "content-encoding": "gzip"}
    answer = receiver.ask("POST", TRACES_PATH, content=gzip.compress(body), headers=headers)
    assert (answer.status_code, answer.headers["content-type"], answer.json()) == (200, JSON, {})
    assert [one[:2] for one in receiver.stamps()] == [("orders", "shop")]


@pytest.mark.parametrize("path", [TRACES_PATH, METRICS_PATH])
@pytest.mark.parametrize(
    ("headers", "body", "status", "told"),
    [
        ({"content-type": "text/plain"}, b"", 415, "a body is application/x-protobuf or application/json, as it is or"),
        ({}, b"", 415, "got no content-type, identity"),
        ({"content-type": PROTOBUF, "content-encoding": "br"}, b"", 415, "got application/x-protobuf, br"),
        ({"content-type": PROTOBUF}, b"\xff", 400, "the body is no OTLP request in application/x-protobuf: "),
        ({"content-type": JSON}, b"{", 400, "the body is no OTLP request in application/json: "),
    ],
)
def test_what_is_no_request_is_refused(
    receiver: Receiver, path: str, headers: dict[str, str], body: bytes, status: int, told: str
) -> None:
    """With a problem that says what is taken."""
    answer = receiver.ask("POST", path, content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert told in answer.json()["detail"]


def test_other_signals_are_not_taken(receiver: Receiver) -> None:
    """The answer says what is."""
    answer = receiver.ask("POST", "/v1/logs", content=b"", headers={"content-type": PROTOBUF})
    assert answer.status_code == 404
    assert answer.json()["detail"] == "Not Found: spans go to POST /v1/traces, metrics to POST /v1/metrics"


def test_a_large_body_is_taken_and_a_larger_one_is_not(receiver: Receiver) -> None:
    """Of 10 MB all spans are; over the limit nothing is, and the SDK may drop it."""
    spans = [left(number.to_bytes(24, "big")) for number in range(1, 40_001)]
    body = build_traces([*spans, build_producer_span(ONE, NOW_NS, NOW_NS, name="x" * 7_000_000)], "shop")
    assert len(body) > 10_000_000
    assert receiver.ask("POST", TRACES_PATH, content=body, headers={"content-type": PROTOBUF}).status_code == 200
    headers = {"content-type": PROTOBUF}
    answer = receiver.ask("POST", TRACES_PATH, Limits(max_body_bytes=1_000), content=body, headers=headers)
    assert answer.status_code == 413
    assert receiver.intake.stamps == 40_001


def test_spans_that_are_of_no_use_are_told(receiver: Receiver) -> None:
    """As a partial success, with the reasons: an SDK does not send them again."""
    receiver.take(left(), service=None)
    answer = receiver.take(left(OTHER), build_producer_span(ONE, 0, 0), service="no name")
    told = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (told.rejected_spans, told.error_message) == (2, "2 spans: bad name")
    told = ExportTraceServiceResponse.FromString(receiver.take(build_producer_span(ONE, 0, 0)).content).partial_success
    assert (told.rejected_spans, told.error_message) == (1, "1 spans: otlp: no times")


def test_nodes_that_are_not_allowed_are_not_stamped(tmp_path: Path) -> None:
    """Spans of another node are taken, and left out."""
    receiver = Receiver(tmp_path, [NodeName("orders", "billing")])
    assert receiver.take(left(), service="shop").status_code == 200
    assert receiver.take(arrived()).status_code == 200
    assert [one[:2] for one in receiver.stamps()] == [("orders", "billing")]
    assert receiver.intake.rejected == {"unknown_node": 1}


def test_a_sink_that_takes_nothing_refuses_the_next_request(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans that were taken before wait, and are not lost; the SDK sends the next ones again."""
    receiver.take(left(), service="shop")
    (sender,) = receiver.intake._books._senders.values()
    with monkeypatch.context() as full:
        full.setattr(sender, "offer", lambda _: False)
        assert receiver.take(left(OTHER), service="shop").status_code == 200
        answer = receiver.take(left(OWN), service="shop")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["detail"] == "the sink takes nothing now: send the spans again"
        receiver.turn(1)
    assert receiver.take(left(OWN), service="shop").status_code == 200
    assert len(receiver.stamps()) == 3


def test_what_waits_at_the_end_counts_as_dropped(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that takes nothing until the tap ends."""
    receiver.take(left(), service="shop")
    (sender,) = receiver.intake._books._senders.values()
    monkeypatch.setattr(sender, "offer", lambda _: False)
    receiver.take(left(OTHER), service="shop")
    assert [(drop.cause, drop.count) for batch in receiver.batches() for drop in batch.drops] == [("sink refused", 1)]


def test_health_tells_of_the_sink(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ready while it can be written."""
    assert receiver.ask("GET", "/healthz").json() == {"status": "ok"}
    assert receiver.ask("GET", "/readyz").status_code == 200

    def fail(_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(intake, "check_sink", fail)
    answer = receiver.ask("GET", "/readyz")
    assert (answer.status_code, answer.json()["detail"].partition(" cannot")[2]) == (503, " be written: disk full")


def completed(receiver: Receiver) -> int:
    """Return up to which moment the tap says that billing is told, in seconds from now."""
    last_us = max(batch.complete_through_us for batch in receiver.batches() if batch.node == "billing")
    return (last_us - EPOCH_US) // 1_000_000


def test_a_service_is_told_by_its_own_metrics(receiver: Receiver) -> None:
    """Once the spans between two readings are here, and what they are of had its time to come."""
    receiver.take(left(), service="shop")
    receiver.take(arrived())
    receiver.read(10, 1)
    receiver.take(arrived(own=OWN_OTHER, at_ns=NOW_NS + 15 * S))
    receiver.read(20, 2)
    receiver.read(30, 2)
    receiver.turn(PATIENCE_S)
    receiver.turn(SETTLE_S)
    assert receiver.reported == ["billing is told from now on: each of its SDKs says how many spans have ended"]
    assert completed(receiver) == 20


def test_a_service_without_metrics_is_never_told(receiver: Receiver) -> None:
    """Time alone tells nothing."""
    receiver.take(left(), service="shop")
    receiver.take(arrived())
    for _ in range(30):
        receiver.turn(10)
    assert completed(receiver) < 0


def test_missing_spans_count_in_each_minute_that_they_may_be_of(receiver: Receiver) -> None:
    """Those before the period whose messages may be on their way, and those of it."""
    receiver.take(left(), service="shop")
    receiver.take(arrived())
    receiver.read(10, 0)
    receiver.read(20, 2)
    receiver.read(30, 2)
    receiver.turn(PATIENCE_S)
    receiver.turn(SETTLE_S)
    drops = [(drop.cause, drop.count, drop.window_start_ms) for batch in receiver.batches() for drop in batch.drops]
    this_ms = EPOCH_US // 1_000
    assert drops == [(MISSING, 2, this_ms + minute * 60_000) for minute in range(-5, 1)]


def test_metrics_of_others_are_passed_over(receiver: Receiver) -> None:
    """An SDK sends those of its service to the same address."""
    body = build_metrics(SdkReading(NOW_NS, NOW_NS, 0, 0, 0, 0), "billing", "one").replace(b"otel.sdk", b"shop.sdk")
    assert receiver.ask("POST", METRICS_PATH, content=body, headers={"content-type": PROTOBUF}).status_code == 200
