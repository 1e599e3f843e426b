"""Routes of the API to messages, incidents, outliers, probes and the monitor's own accounts."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy import Connection
from starlette.convertors import PathConvertor, register_url_convertor

from hopwatch.alerts import cli_json
from hopwatch.alerts.storage.silences import EVERYTHING
from hopwatch.api import pages
from hopwatch.api.documents import document
from hopwatch.api.parameters import (
    Cursor,
    From,
    ItemLimit,
    OfStream,
    To,
    check_access,
    parse_cursor,
    parse_range,
)
from hopwatch.api.responses import respond
from hopwatch.api.result_store import ResultStore
from hopwatch.client import results
from hopwatch.monitor.clock import Clock
from hopwatch.monitor.lookup import journey
from hopwatch.monitor.lookup.journey_json import journey_to_json
from hopwatch.monitor.lookup.missing_messages import list_losses
from hopwatch.monitor.outliers.finding_json import finding_to_json
from hopwatch.monitor.store import outliers, reader
from hopwatch.monitor.store.instances import InstanceFilter


class _IdConvertor(PathConvertor):
    """Convertor of an id in a path, which may hold any character: a line feed too, which the framework's leaves out."""

    regex = "(?s:.*)"


register_url_convertor("id", _IdConvertor())
MAX_MOMENT_US: Final = 2**62
"""Moment behind all windows and markers."""


def build_router(store: ResultStore, clock: Clock) -> APIRouter:
    """Build the routes to what is found in the results of a store."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/messages/{message_id:id}", response_model=results.MessageJourney, responses=document())
    async def get_message(
        request: Request,
        message_id: Annotated[str, Path(min_length=1, max_length=256, description="its id, as it was given")],
        stream: OfStream = None,
    ) -> Response:
        """Return where a message is missing, and its stamps as far as the store keeps them, as `hopwatch find` does."""
        check_access(request, stream)
        lost = await store.ask_slowly(lambda engine: list_losses(engine, journey.parse_ids(message_id), stream))
        stamps = journey.unite_stamps(*(one.stamps for one in lost))
        return respond(request, journey_to_json(message_id, stamps, lost))

    @routes.get("/incidents", response_model=results.Incidents, responses=document())
    def get_incidents(request: Request, stream: OfStream = None) -> Response:
        """List open incidents, pending alerts, heartbeats and silences, as `hopwatch alerts list --json` does."""
        check_access(request, stream)
        found = store.ask(lambda engine: cli_json.query_open_json(engine, clock.now_us()))
        return respond(request, found if stream is None else _choose_stream(found, stream))

    @routes.get("/outliers", response_model=results.Outliers, responses=document())
    def get_outliers(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: OfStream = None,
        from_time: From = None,
        to_time: To = None,
        notices: Annotated[bool, Query(description="with what was only noticed")] = False,  # noqa: FBT002 - a parameter of a query
        limit: ItemLimit = 100,
    ) -> Response:
        """List outliers, the newest first, each as `hopwatch outliers list --json` shows it."""
        check_access(request, stream)
        from_us, to_us = parse_range(from_time, to_time)
        span = -MAX_MOMENT_US if from_us is None else from_us, MAX_MOMENT_US if to_us is None else to_us

        def query(connection: Connection) -> dict[str, Any]:
            total, found = outliers.read_newest_findings(connection, stream, span, limit, is_all=notices)
            return {"total": total, "outliers": [finding_to_json(*one) for one in found]}

        return respond(request, store.read(query))

    @routes.get("/probes", response_model=results.Probes, responses=document())
    def get_probes(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: OfStream = None,
        search: Annotated[str, Query(max_length=128, description="in the name of stream, node or probe")] = "",
        gone: Annotated[bool, Query(description="with those that left long ago")] = False,  # noqa: FBT002 - a parameter of a query
        cursor: Cursor = None,
        limit: ItemLimit = 100,
    ) -> Response:
        """List probe instances, those with problems first."""
        check_access(request, stream)
        asked, first = InstanceFilter(stream or "", search, gone), parse_cursor(cursor)
        return respond(request, store.read(lambda to: pages.read_probes(to, asked, first, limit)))

    @routes.get("/accounts", response_model=results.MonitorAccounts, responses=document())
    def get_accounts(request: Request) -> Response:
        """Return the monitor's own accounts, those of `hopwatch report --json`; of all streams."""
        check_access(request, None)
        return respond(request, store.read(reader.read_accounts))

    return routes


def _choose_stream(found: dict[str, Any], stream: str) -> dict[str, Any]:
    """Return the incidents that are about one stream alone."""

    def is_of_it(incident: dict[str, Any]) -> bool:
        return bool(incident["alerts"]) and all(alert["stream"] == stream for alert in incident["alerts"])

    own = {name: [one for one in found[name] if is_of_it(one)] for name in ("incidents", "heartbeats")}
    targets = {EVERYTHING, stream, *(one["key"] for one in own["incidents"])}
    silences = [one for one in found["silences"] if one["target"] in targets]
    return own | {"pending": [one for one in found["pending"] if one["stream"] == stream], "silences": silences}
