"""Requests of OTLP in protobuf and in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.probes.taps.otlp.request_decoder import JSON, PROTOBUF, OtlpError, decode_metrics, decode_spans
from tests.support.otlp_requests import build_producer_span, build_traces

SPAN: dict[str, Any] = {
    "traceId": "01" * 16,
    "spanId": "02" * 8,
    "name": "orders send",
    "kind": 4,
    "startTimeUnixNano": "1700000040000000000",
    "endTimeUnixNano": 1700000040000000005,
    "links": [{"traceId": "03" * 16, "spanId": "04" * 8}],
    "newerField": {"is": ["passed", "over"]},
}


def test_json_says_the_same_as_protobuf() -> None:
    """Ids are hexadecimal in it, numbers may be texts, and fields that are not known are passed over."""
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}).encode()
    (span,) = decode_spans(body, JSON).resource_spans[0].scope_spans[0].spans
    assert (span.trace_id, span.span_id, span.kind) == (b"\1" * 16, b"\2" * 8, 4)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1700000040000000000, 1700000040000000005)
    assert (span.links[0].trace_id, span.links[0].span_id) == (b"\3" * 16, b"\4" * 8)


def test_protobuf_is_read() -> None:
    """As SDKs send it by default."""
    sent = build_producer_span(b"\1" * 24, 5, 6)
    (span,) = decode_spans(build_traces([sent]), PROTOBUF).resource_spans[0].scope_spans[0].spans
    assert span == sent


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        (PROTOBUF, b"\xff\xff"),
        (JSON, b"{"),
        (JSON, b"[1]"),
        (JSON, b'{"resourceSpans": 7}'),
        (JSON, b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}'),
        (JSON, b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": "soon"}]}]}]}'),
        (JSON, b'{"resourceSpans": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
    ],
)
def test_a_body_that_is_none_is_refused(media_type: str, body: bytes) -> None:
    """With its type, and what is wrong with it."""
    with pytest.raises(OtlpError, match=f"the body is no OTLP request in {media_type}: ."):
        decode_spans(body, media_type)


@given(st.sampled_from([JSON, PROTOBUF]), st.binary(max_size=200))
def test_no_body_makes_another_error(media_type: str, body: bytes) -> None:
    """Strangers may send anything."""
    for decode in (decode_spans, decode_metrics):
        try:
            decode(body, media_type)
        except OtlpError:
            continue


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(SPAN)), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.sampled_from(["resourceSpans", "scopeSpans", "spans"]))
def test_no_document_makes_another_error(value: object, at: str) -> None:
    """Of whatever form it is, at whatever place."""
    document = {
        "resourceSpans": {"resourceSpans": value},
        "scopeSpans": {"resourceSpans": [{"scopeSpans": value}]},
        "spans": {"resourceSpans": [{"scopeSpans": [{"spans": value}]}]},
    }[at]
    try:
        decode_spans(json.dumps(document).encode(), JSON)
    except OtlpError:
        return
