"""HTTP routes of the gate: send the events of a stream, one or a batch, in JSON or in Avro."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from hopwatch.gate import request_bodies
from hopwatch.gate.avro_events import EventPaths
from hopwatch.gate.codec_cache import CodecCache
from hopwatch.gate.ids import UUID_PATTERN
from hopwatch.gate.intake import EventIntake, EventResult, EventStatus
from hopwatch.gate.producers import SCOPE_KEY, Producers
from hopwatch.gate.request_bodies import SentEvent
from hopwatch.gate.rules import FieldPath
from hopwatch.probes.http import handlers
from hopwatch.probes.http.problems import Fault, HttpProblem
from hopwatch.probes.message_headers import TIME_HEADER

JSON: Final = "application/json"
AVRO: Final = "application/avro"
MAX_BODY_BYTES: Final = 1024 * 1024
"""Maximum size of a request with events, decompressed."""

_DESCRIPTIONS: Final = {
    400: "the body is no JSON, no Avro object container file, or no gzip, or ends too early",
    401: "missing or invalid token",
    403: "the producer may not send to this stream",
    404: "there is no such stream",
    408: "the body came too slowly",
    409: "another event has this id, or the stream's subject has no schema",
    413: "the body, or the event, is too large",
    415: "the body is of another type, or compressed in a way that is not known",
    429: "over the quota of the producer, or over the limit of the throttle: retry after the time in Retry-After",
    422: "an event may not enter: errors say which, where and why",
    503: "the transport did not take it, or too much came at once: send it again, with the same ids, after Retry-After",
}
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "data"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "time": {
            "description": "the event time: RFC 3339 with a zone, or whole µs since 1970; that of the id without it",
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer", "minimum": 0}, {"type": "null"}],
        },
        "data": {"description": "the event, as the latest schema of the stream's subject has it"},
    },
}
_FINGERPRINT: Final = Query(
    alias="schema",
    pattern=r"^[0-9a-f]{64}$",
    description="the fingerprint of the version that the data is of; the latest without it",
)
_FIELD: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,127}(\.[A-Za-z_][A-Za-z0-9_]{0,127}){0,15}$"
_ID_FIELD: Final = Query(alias="id", pattern=_FIELD, description="of a container file: the field that has the id")
_TIME_FIELD: Final = Query(
    alias="time", pattern=_FIELD, description="of a container file: the field that has the event time; that of the id"
)
FieldName = Annotated[str | None, _ID_FIELD]
TimeFieldName = Annotated[str | None, _TIME_FIELD]
EventId = Annotated[str, Path(pattern=f"^{UUID_PATTERN.pattern}$", description="the event's id, a UUID")]
Fingerprint = Annotated[str | None, _FINGERPRINT]


class EventFaultAnswer(BaseModel):
    """Error or note about an event, with its place."""

    place: str
    detail: str


class EventAnswer(BaseModel):
    """Result of one event."""

    id: str
    status: int
    arrived: str
    errors: list[EventFaultAnswer] = []


class EventBatchAnswer(BaseModel):
    """Result of a batch; ``events`` has only those with errors or notes, or all of them with ``each=true``."""

    entered: int
    held: int
    events: list[EventAnswer]


def build_router(intakes: Mapping[str, EventIntake], codecs: CodecCache, producers: Producers) -> APIRouter:
    """Build the routes to the entrances of streams."""
    routes = APIRouter()
    answers = handlers.document_problems(_DESCRIPTIONS)
    known = {"enum": sorted(intakes)} if intakes else None
    told = "a stream that the configuration has an entrance to"
    stream_of: str = Path(pattern=r"^[A-Za-z0-9._-]{1,128}$", description=told, json_schema_extra=known)

    @routes.put(
        "/streams/{stream}/events/{event_id}",
        status_code=HTTPStatus.CREATED,
        response_model=EventAnswer,
        responses={**answers, 202: {"model": EventAnswer, "description": "the event is in quarantine, for review"}},
        openapi_extra={
            "requestBody": _document_body({"description": "the event"}, "an event, framed"),
            "parameters": [_document_time_header()],
        },
    )
    async def put_event(
        request: Request, event_id: EventId, *, stream: str = stream_of, schema: Fingerprint = None
    ) -> Response:
        """Accept one event; 2xx once the transport has it."""
        intake = _find_intake(intakes, stream)
        kind = _check_content_type(request)
        body = await request.body()
        producer = request.scope[SCOPE_KEY]
        producers.charge_stream(producer, stream, 1, len(body))
        time = _parse_time_header(request)
        codec = await codecs.get_codec(intake.subject, _parse_fingerprint(schema))
        if kind == AVRO:
            sent = SentEvent(event_id, time, body, decoded=await codecs.decode_event(body, codec))
        else:
            sent = request_bodies.parse_single(event_id, time, body)
        (outcome,) = await intake.accept([sent], codec, producer=producer.name, each=False)
        return _respond(int(outcome.status), _build_event_answer(outcome))

    @routes.post(
        "/streams/{stream}/events",
        status_code=HTTPStatus.CREATED,
        response_model=EventBatchAnswer,
        responses={
            **answers,
            207: {"model": EventBatchAnswer, "description": "with each=true: what became of each event"},
        },
        openapi_extra={
            "requestBody": _document_body(
                {"type": "array", "minItems": 1, "items": _EVENT}, "an object container file; the query names its ids"
            )
        },
    )
    async def post_events(  # noqa: PLR0913 - its parameters
        request: Request,
        *,
        stream: str = stream_of,
        schema: Fingerprint = None,
        each: Annotated[bool, Query(description="accept each event on its own, and answer for each")] = False,
        id_field: FieldName = None,
        time_field: TimeFieldName = None,
    ) -> Response:
        """Accept events, all of them or none; 2xx once the transport has them."""
        intake = _find_intake(intakes, stream)
        kind = _check_content_type(request)
        body = await request.body()
        producer, fingerprint = request.scope[SCOPE_KEY], _parse_fingerprint(schema)
        if kind == AVRO:
            paths = _parse_paths(id_field, time_field)
            codec = await codecs.get_codec(intake.subject, fingerprint)
            sent = await codecs.parse_container(body, codec, paths, MAX_BODY_BYTES)
            producers.charge_stream(producer, stream, len(sent), len(body))
        else:
            sent = request_bodies.parse_batch(body)
            producers.charge_stream(producer, stream, len(sent), len(body))
            codec = await codecs.get_codec(intake.subject, fingerprint)
        outcomes = await intake.accept(sent, codec, producer=producer.name, each=each)
        return _respond(
            HTTPStatus.MULTI_STATUS if each else HTTPStatus.CREATED, _build_batch_answer(outcomes, each=each)
        )

    return routes


def _document_body(schema: dict[str, Any], avro: str) -> dict[str, Any]:
    binary = {"type": "string", "format": "binary", "description": avro}
    return {"required": True, "content": {JSON: {"schema": schema}, AVRO: {"schema": binary}}}


def _document_time_header() -> dict[str, Any]:
    told = "the event time: RFC 3339 with a zone, or whole µs since 1970; that of the id without it"
    return {"name": TIME_HEADER, "in": "header", "required": False, "description": told, "schema": {"type": "string"}}


def _find_intake(intakes: Mapping[str, EventIntake], stream: str) -> EventIntake:
    found = intakes.get(stream)
    if found is None:
        names = ", ".join(sorted(intakes)) or "none"
        told = f"there is no entrance to a stream {stream!r}; [gate.streams] of the configuration has: {names}"
        raise HttpProblem(HTTPStatus.NOT_FOUND, "unknown-stream", told[:400])
    return found


def _check_content_type(request: Request) -> str:
    """Return the type of the body: one of the two that are taken.

    Raises:
        HttpProblem: it is another, or the body is packed in a way that is not known.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in {JSON, AVRO} or encoding != "identity":
        told = (
            f"the header content-type is {JSON} or {AVRO}, got {kind[:60] or 'none'}; content-encoding is gzip or none,"
            f" got {encoding[:60]}"
        )
        raise HttpProblem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unknown-type", told)
    return kind


def _parse_paths(id_field: str | None, time_field: str | None) -> EventPaths:
    if id_field is None:
        told = "an object container file does not say which field has the ids: name it, such as ?id=order.id"
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told)
    return EventPaths(FieldPath.parse(id_field), None if time_field is None else FieldPath.parse(time_field))


def _parse_time_header(request: Request) -> str | int | None:
    said = request.headers.get(TIME_HEADER)
    return int(said) if said is not None and said.isascii() and said.isdecimal() and len(said) < 20 else said  # noqa: PLR2004 - the digits of 64 bits


def _parse_fingerprint(fingerprint: str | None) -> bytes | None:
    return None if fingerprint is None else bytes.fromhex(fingerprint)


def _respond(status: int, said: object) -> Response:
    return Response(orjson.dumps(said), int(status), media_type=JSON)


def _build_event_answer(outcome: EventResult) -> dict[str, Any]:
    arrived = datetime.fromtimestamp(outcome.arrived_us / 1e6, UTC)
    told: dict[str, Any] = {
        "id": outcome.event_id,
        "status": int(outcome.status),
        "arrived": arrived.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    return told | {"errors": _list_errors(outcome.faults)} if outcome.faults else told


def _build_batch_answer(outcomes: list[EventResult], *, each: bool) -> dict[str, Any]:
    return {
        "entered": sum(one.status is EventStatus.ENTERED for one in outcomes),
        "held": sum(one.status is EventStatus.HELD for one in outcomes),
        "events": [_build_event_answer(one) for one in outcomes if each or one.faults],
    }


def _list_errors(faults: tuple[Fault, ...]) -> list[dict[str, str]]:
    return [{"place": one.place, "detail": one.detail} for one in faults]
