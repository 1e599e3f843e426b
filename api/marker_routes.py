"""Routes of the API to markers: those of a range, and a new one, which readers may set who are allowed to."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection, Engine

from hopwatch.api.documents import document
from hopwatch.api.finding_routes import MAX_MOMENT_US
from hopwatch.api.parameters import From, OfStream, To, check_access, parse_moment, parse_range
from hopwatch.api.readers import SCOPE_KEY, Reader
from hopwatch.api.responses import JSON, respond
from hopwatch.api.result_store import ResultStore
from hopwatch.client import results
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.markers import MAX_CHARS, MAX_LABELS, Marker, marker_to_json
from hopwatch.monitor.settings import Settings
from hopwatch.monitor.store.markers import add_marker, query_markers
from hopwatch.probes.contract.limits import NAME_PATTERN
from hopwatch.probes.http.problems import HttpProblem


class NewMarker(BaseModel):
    """Marker to be set: what happened, at which moment, now by default, and to which stream, to all by default."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=MAX_CHARS, description="what happened, one line")
    at: str | None = Field(None, max_length=40, description="ISO 8601, UTC where it names no zone")
    stream: str | None = Field(None, pattern=f"^{NAME_PATTERN.pattern}$")
    labels: dict[str, str] = Field({}, max_length=MAX_LABELS)


def build_router(store: ResultStore, settings: Settings, clock: Clock) -> APIRouter:
    """Build the routes to the markers of a store."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/markers", response_model=results.Markers, responses=document())
    def get_markers(request: Request, stream: OfStream = None, from_time: From = None, to_time: To = None) -> Response:
        """List markers by time, those of all streams too; the latest 200 of a range."""
        check_access(request, stream)
        from_us, to_us = parse_range(from_time, to_time)

        def query(connection: Connection) -> dict[str, Any]:
            found = query_markers(connection, stream, from_us or 0, MAX_MOMENT_US if to_us is None else to_us)
            return {"markers": [marker_to_json(one) for one in found]}

        return respond(request, store.read(query))

    @routes.post("/markers", status_code=201, response_model=results.SetMarker, responses=document(404))
    def post_marker(request: Request, marker: NewMarker) -> Response:
        """Mark a moment, such as a deploy, in the charts of a stream or of all, in the name of the reader."""
        reader: Reader = request.scope[SCOPE_KEY]
        reader.check_may_mark()
        check_access(request, marker.stream)
        if marker.stream is not None and marker.stream not in settings.streams:
            raise HttpProblem(HTTPStatus.NOT_FOUND, "no-stream", f"there is no stream {marker.stream!r:.140}")
        at_us = clock.now_us() if marker.at is None else parse_moment("at", marker.at)

        def mark(engine: Engine) -> Marker:
            made = Marker(at_us, marker.text, reader.name, marker.stream or "", marker.labels)
            return replace(made, number=add_marker(engine, made))

        body = orjson.dumps(marker_to_json(store.ask(mark)))
        return Response(body, HTTPStatus.CREATED, media_type=JSON)

    return routes
