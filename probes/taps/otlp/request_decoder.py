"""Decoding of OTLP requests, in protobuf and in JSON, into protobuf's messages."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"

_IDS: Final = ("traceId", "spanId", "parentSpanId")
_Request = TypeVar("_Request", bound=Message)


class OtlpError(ValueError):
    """Body that is no OTLP request."""


def decode_spans(body: bytes, media_type: str) -> ExportTraceServiceRequest:
    """Decode a request of spans.

    Raises:
        OtlpError: it is none.
    """
    return _decode(ExportTraceServiceRequest(), body, media_type)


def decode_metrics(body: bytes, media_type: str) -> ExportMetricsServiceRequest:
    """Decode a request of metrics.

    Raises:
        OtlpError: it is none.
    """
    return _decode(ExportMetricsServiceRequest(), body, media_type)


def _decode(request: _Request, body: bytes, media_type: str) -> _Request:
    try:
        if media_type == PROTOBUF:
            request.ParseFromString(body)
        else:
            document = orjson.loads(body)
            _convert_ids(document)
            json_format.ParseDict(document, request, ignore_unknown_fields=True)
    except (DecodeError, json_format.ParseError, orjson.JSONDecodeError, binascii.Error, RecursionError) as error:
        raise OtlpError(f"the body is no OTLP request in {media_type}: {error!s:.200}") from None
    return request


def _convert_ids(document: Any) -> None:  # noqa: ANN401 - JSON of strangers
    """Convert the ids of spans and links from hexadecimal, as OTLP has them, to base64, as protobuf has them."""
    for resource in _read_objects(document, "resourceSpans"):
        for scope in _read_objects(resource, "scopeSpans"):
            for span in _read_objects(scope, "spans"):
                for one in (span, *_read_objects(span, "links")):
                    for name in _IDS:
                        if isinstance(one.get(name), str):
                            one[name] = base64.b64encode(binascii.unhexlify(one[name].encode())).decode()


def _read_objects(document: Any, name: str) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON of strangers
    found = document.get(name) if isinstance(document, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
