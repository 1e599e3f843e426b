"""OTLP tap by gRPC, called as SDKs and collectors call it, and as strangers do."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from hopwatch.probes.http.granian_server import PortTakenError
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.metrics.account import EventOutcome
from hopwatch.probes.taps.context import RunContext
from hopwatch.probes.taps.otlp.app import MAX_BODY_BYTES
from hopwatch.probes.taps.otlp.grpc_server import METRICS_SERVICE, TRACES_SERVICE, serve_grpc
from hopwatch.probes.taps.otlp.intake import KnownServices, SpanIntake
from hopwatch.probes.taps.otlp.sdk_metrics import SdkReading
from hopwatch.testing import EPOCH_US, ManualClock
from servers.process import free_ports
from tests.support.otlp_requests import build_metrics, build_producer_span, build_traces
from tests.support.probe_host import rows, spooled

ONE: Final = bytes([1]) * 24
NOW_NS: Final = EPOCH_US * 1_000
Channel = Any
"""A channel of gRPC, whose library has no types."""


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[SpanIntake]:
    """Yield an intake that knows one process of billing, on a clock set by hand."""
    around = RunContext(lambda _: None, ManualClock())
    opened = SpanIntake(f"spool:{tmp_path / 'spool'}", around, KnownServices(None, {"billing": 1}))
    yield opened
    opened.close()


@pytest.fixture
def channel(intake: SpanIntake) -> Iterator[Channel]:
    """Yield a channel to the server of the intake."""
    (port,) = free_ports(1)
    with serve_grpc(intake, "127.0.0.1", port), grpc.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened


def traces(service: str | None = "billing") -> bytes:
    """Return a request with one producer span."""
    return build_traces([build_producer_span(ONE, NOW_NS, NOW_NS)], service, "one")


def export(channel: Channel, body: bytes, service: str = TRACES_SERVICE, **how: object) -> bytes:
    """Send a request, and return the answer."""
    answer: bytes = channel.unary_unary(f"/{service}/Export")(body, **how)
    return answer


def refuse(channel: Channel, body: bytes, service: str = TRACES_SERVICE, **how: object) -> tuple[grpc.StatusCode, str]:
    """Send a request that is refused; return the code and the text."""
    with pytest.raises(grpc.RpcError) as told:
        export(channel, body, service, **how)
    error: Any = told.value
    return error.code(), error.details()


def answered(intake: SpanIntake) -> dict[str, int]:
    """Return how many requests were answered, by status."""
    settled = intake.requests.snapshot().settled
    return {label: count for (outcome, label), count in settled.items() if outcome is EventOutcome.ANSWERED and count}


def test_spans_are_stamped(intake: SpanIntake, channel: Channel, tmp_path: Path) -> None:
    """A repetition is answered in the same way, and stamps nothing."""
    for _ in range(2):
        assert export(channel, traces()) == b""
    intake.close()
    seen = [row for batches in spooled(tmp_path / "spool").values() for row in rows(batches)]
    assert len(seen) == 1
    assert answered(intake) == {"200": 2}


def test_compressed_spans_are_stamped(intake: SpanIntake, channel: Channel) -> None:
    """Collectors compress by gzip."""
    export(channel, traces(), compression=grpc.Compression.Gzip)
    assert intake.stamps == 1


def test_metrics_are_taken(intake: SpanIntake, channel: Channel) -> None:
    """The account of an SDK comes as it comes by HTTP."""
    body = build_metrics(SdkReading(NOW_NS, NOW_NS, 1, 0, 0, 0), "billing", "one")
    assert export(channel, body, METRICS_SERVICE) == b""
    assert refuse(channel, b"\xff", METRICS_SERVICE)[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert answered(intake) == {"200": 1, "400": 1}


def test_what_is_not_used_is_told(channel: Channel) -> None:
    """Spans of a service without a name are rejected, and not sent again."""
    answer = ExportTraceServiceResponse.FromString(export(channel, traces(None)))
    assert answer.partial_success.rejected_spans == 1
    assert answer.partial_success.error_message == "1 spans: bad name"


def test_a_body_that_is_no_request_is_refused(intake: SpanIntake, channel: Channel) -> None:
    """The code is one at which an SDK does not send again."""
    code, told = refuse(channel, b"\xff")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert told.startswith("the body is no OTLP request in application/x-protobuf: ")
    assert answered(intake) == {"400": 1}


def test_a_sink_that_refuses_has_spans_sent_again(
    intake: SpanIntake, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code is the one at which OTLP sends again."""

    def refuse_all() -> None:
        raise HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-down", "the sink is down")

    monkeypatch.setattr(intake, "_send_waiting", refuse_all)
    assert refuse(channel, traces()) == (grpc.StatusCode.UNAVAILABLE, "the sink is down")
    assert answered(intake) == {"503": 1}


def test_a_fault_of_our_own_is_no_answer_of_success(
    intake: SpanIntake, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code is that of an unknown error, and the account has it as 500."""
    monkeypatch.setattr(intake, "take_spans", None)
    assert refuse(channel, b"")[0] is grpc.StatusCode.UNKNOWN
    assert answered(intake) == {"500": 1}


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_huge_body_is_refused(intake: SpanIntake, channel: Channel, compression: grpc.Compression) -> None:
    """A compressed one is measured as it is decompressed."""
    body = bytes(MAX_BODY_BYTES + 1)
    assert len(gzip.compress(body)) < MAX_BODY_BYTES / 100
    code, _ = refuse(channel, body, compression=compression)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert answered(intake) == {}


def test_another_service_is_not_there(channel: Channel) -> None:
    """Logs have nothing of messages."""
    assert refuse(channel, b"", "opentelemetry.proto.collector.logs.v1.LogsService")[0] is grpc.StatusCode.UNIMPLEMENTED


def test_a_port_that_is_taken_is_named(intake: SpanIntake) -> None:
    """A second receiver on it would be given some of the connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError) as told, serve_grpc(intake, "127.0.0.1", port):
            pass
    assert str(told.value) == f"127.0.0.1 port {port} cannot be listened on: choose another"
