"""ASGI app of the HTTP tap: accepts observations or explains their refusal; documented at ``/openapi.json``."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import orjson
from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel

from hopwatch.probes.http import handlers
from hopwatch.probes.http.handlers import HealthAnswer
from hopwatch.probes.http.limits import App, LimitMiddleware, Limits
from hopwatch.probes.http.problems import HttpProblem
from hopwatch.probes.http.request_count import RequestCountMiddleware
from hopwatch.probes.taps.errors import TapSourceError
from hopwatch.probes.taps.http.accounting import NOTE, AccountingMiddleware
from hopwatch.probes.taps.http.bodies import ObservationsBody
from hopwatch.probes.taps.http.body_parser import PostedBody
from hopwatch.probes.taps.http.intake import ObservationIntake
from hopwatch.probes.taps.http.packets import PacketBody
from hopwatch.probes.taps.http.periodic_work import run_periodically
from hopwatch.probes.taps.http.refusals import RefusalProblem, RefusedObservations

WORKERS: Final = 4
"""Threads that parse bodies; further requests wait."""
JSON: Final = "application/json"
RECORD: Final = ("application/vnd.hopwatch.batch", "application/octet-stream")
PATH: Final = "/v1/observations"
PACKETS_PATH: Final = "/v1/metrics"

_DESCRIPTIONS: Final = {
    400: "the body is no JSON, or no gzip",
    408: "the body came too slowly",
    413: "the body is too large",
    415: "the body is of a type, or compressed in a way, that is not known",
    422: "the body holds nothing that can be an observation, or a record",
    503: "the sink takes nothing now, or too many requests came at once: retry after the time in Retry-After",
}


class AcceptedAnswer(BaseModel):
    """Response to an accepted body: its number of observations."""

    observations: int


class CountedAnswer(BaseModel):
    """Response to an accepted packet: its number of counts."""

    counts: int


class ObservationFaultAnswer(BaseModel):
    """Fault of an observation, with its place."""

    place: str
    detail: str


class ObservationAnswer(BaseModel):
    """Result of one observation; the first few refused ones have errors."""

    status: int
    errors: list[ObservationFaultAnswer] = []


class PartialAnswer(BaseModel):
    """Response to a partly accepted body: the numbers of observations, and a result for each."""

    observations: int
    refused: int
    items: list[ObservationAnswer]


_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    **handlers.document_problems(_DESCRIPTIONS),
    207: {"model": PartialAnswer, "description": "a part of the observations was taken: what became of each"},
}


def build_app(intake: ObservationIntake, limits: Limits | None = None) -> App:
    """Build the app of an intake, with its limits."""
    api = FastAPI(
        title="Hopwatch tap",
        description="Takes what probes, or services without one, have seen.",
        version="1",
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: run_periodically(intake.tick),
    )
    limiter = CapacityLimiter(WORKERS)

    @api.post(
        PATH,
        status_code=HTTPStatus.ACCEPTED,
        response_model=AcceptedAnswer,
        responses=_RESPONSES,
        openapi_extra={"requestBody": _build_request_body(ObservationsBody, *RECORD)},
    )
    async def observe(request: Request) -> Response:
        """Take observations of a node, or a record of a probe as it is on the wire; what is taken, the sink has.

        What is refused counts as dropped: of the node if it could be read, else of every node that is stamped here.
        """
        note = request.scope[NOTE]
        kind = _check_content_type(request)
        body = await request.body()
        try:
            if kind != JSON:
                count = await to_thread.run_sync(intake.forward_record, body, limiter=limiter)
                return _respond(HTTPStatus.ACCEPTED, {"observations": count})
            posted = await to_thread.run_sync(intake.observe, body, limiter=limiter)
        except RefusalProblem as refusal:
            note.refused = refusal.refused
            raise
        note.refused = posted.refused
        if posted.bad_positions:
            return _respond(HTTPStatus.MULTI_STATUS, _build_partial_answer(posted))
        return _respond(HTTPStatus.ACCEPTED, {"observations": len(posted.observations)})

    @api.post(
        PACKETS_PATH,
        status_code=HTTPStatus.ACCEPTED,
        response_model=CountedAnswer,
        responses=handlers.document_problems(_DESCRIPTIONS),
        openapi_extra={"requestBody": _build_request_body(PacketBody)},
    )
    async def count(request: Request) -> Response:
        """Take a packet of a server: what it counted in one minute. The same number again changes nothing.

        What is refused counts as dropped nowhere: the packet's number is missing until it comes.
        """
        note = request.scope[NOTE]
        note.refused = RefusedObservations()
        _check_content_type(request, [JSON])
        counted = await to_thread.run_sync(intake.count, await request.body(), limiter=limiter)
        return _respond(HTTPStatus.ACCEPTED, {"counts": counted})

    @api.get("/healthz")
    async def healthz() -> HealthAnswer:
        """Say that the tap runs."""
        return HealthAnswer()

    @api.get("/readyz", responses=handlers.document_problems({503: "the sink cannot be written"}))
    async def readyz() -> HealthAnswer:
        """Say whether the sink can be written."""
        await to_thread.run_sync(intake.check, limiter=limiter)
        return HealthAnswer()

    handlers.add_handlers(api, f"observations go to POST {PATH}, packets to POST {PACKETS_PATH}")
    api.add_exception_handler(TapSourceError, _on_source)
    counted = AccountingMiddleware(LimitMiddleware(api, limits or Limits()), intake.books)
    return RequestCountMiddleware(counted, intake.requests)


def _build_partial_answer(posted: PostedBody) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    for at in range(len(posted.observations) + len(posted.bad_positions)):
        status = HTTPStatus.UNPROCESSABLE_ENTITY if at in posted.bad_positions else HTTPStatus.ACCEPTED
        faults = posted.faults.get(at)
        errors = {"errors": [{"place": one.place, "detail": one.detail} for one in faults]} if faults else {}
        items.append({"status": int(status), **errors})
    return {"observations": len(posted.observations), "refused": len(posted.bad_positions), "items": items}


def _respond(status: HTTPStatus, said: object) -> Response:
    return Response(orjson.dumps(said), int(status), media_type=JSON)


def _check_content_type(request: Request, kinds: Sequence[str] = (JSON, *RECORD)) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in kinds or encoding != "identity":
        known = f"a body is {' or '.join(kinds[:2])}, as it is or by gzip"
        told = f"{known}; got {kind[:60] or 'no content-type'}, {encoding[:60]}"
        raise HttpProblem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unknown-type", told)
    return kind


def _build_request_body(model: type[BaseModel], *others: str) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {
        "required": True,
        "content": {
            JSON: {"schema": _inline_references(schema, schema.pop("$defs"))},
            **{kind: {"schema": {"type": "string", "format": "binary"}} for kind in others},
        },
    }


def _inline_references(schema: Any, definitions: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """Return a schema with its references replaced by their definitions."""
    if isinstance(schema, list):
        return [_inline_references(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        named = definitions[schema["$ref"].rpartition("/")[2]]
        schema = named | {name: value for name, value in schema.items() if name != "$ref"}
    return {name: _inline_references(value, definitions) for name, value in schema.items()}


async def _on_source(_: Request, error: Exception) -> Response:
    return handlers.build_response(HttpProblem(HTTPStatus.SERVICE_UNAVAILABLE, "sink-down", str(error)))
