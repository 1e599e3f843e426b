"""Routes of the API to streams, windows, nodes, roll-ups and lost ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hopwatch.api import pages
from hopwatch.api.documents import document
from hopwatch.api.parameters import (
    Cursor,
    From,
    ItemLimit,
    NodeName,
    StreamName,
    To,
    WindowLimit,
    WindowStart,
    check_access,
    parse_cursor,
    parse_range,
    parse_window,
)
from hopwatch.api.readers import SCOPE_KEY
from hopwatch.api.responses import respond
from hopwatch.api.result_store import ResultStore
from hopwatch.client import results
from hopwatch.monitor.lookup.comparison import MAX_LOSS_INCREASE, MAX_SLOW_INCREASE, ComparisonQuery
from hopwatch.monitor.store import rollups
from hopwatch.monitor.store.label_counts import VERSION_LABEL

MaxIncrease = Annotated[float, Query(ge=0, le=1, description="the share of bad messages more that is tolerated")]
Revisions = Annotated[bool, Query(description="with what each later judgement changed")]


def build_router(store: ResultStore, labels: Mapping[str, Mapping[str, str]]) -> APIRouter:
    """Build the routes to the results of a store; the labels are those of streams."""
    routes = APIRouter(prefix="/v1")

    @routes.get("/streams", response_model=results.Streams, responses=document())
    def get_streams(request: Request) -> Response:
        """List the streams, with their nodes, their first and last window, and their labels."""
        visible = request.scope[SCOPE_KEY].streams
        return respond(request, store.read(lambda connection: pages.read_streams(connection, visible, labels)))

    @routes.get("/streams/{stream}/windows", response_model=results.Windows, responses=document(404))
    def get_windows(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        from_time: From = None,
        to_time: To = None,
        cursor: Cursor = None,
        limit: WindowLimit = 20,
        revisions: Revisions = False,  # noqa: FBT002 - a parameter of a query
    ) -> Response:
        """List windows by time, each as `hopwatch report --json` shows it."""
        check_access(request, stream)
        span = _page_range(from_time, to_time, cursor)
        return respond(
            request,
            store.read(lambda to: pages.read_windows(to, stream, span, limit, with_revisions=revisions)),
        )

    @routes.get("/streams/{stream}/windows/{start}", response_model=results.Window, responses=document(404))
    def get_window(
        request: Request,
        stream: StreamName,
        start: WindowStart,
        revisions: Revisions = False,  # noqa: FBT002 - a parameter of a query
    ) -> Response:
        """Return one window."""
        check_access(request, stream)
        start_us = parse_window(start)
        return respond(
            request, store.read(lambda to: pages.read_window(to, stream, start_us, with_revisions=revisions))
        )

    @routes.get(
        "/streams/{stream}/windows/{start}/lost/{node}", response_model=results.MissingIds, responses=document(404)
    )
    def get_lost_ids(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        start: WindowStart,
        node: NodeName,
        cursor: Cursor = None,
        limit: ItemLimit = 100,
    ) -> Response:
        """List the ids that are missing at a node in a window; the store keeps as many as ``max_lost_ids`` says."""
        check_access(request, stream)
        start_us, first = parse_window(start), parse_cursor(cursor)
        return respond(request, store.read(lambda to: pages.read_lost_ids(to, stream, start_us, node, first, limit)))

    @routes.get("/streams/{stream}/nodes/{node}", response_model=results.NodeWindows, responses=document(404))
    def get_node(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        node: NodeName,
        from_time: From = None,
        to_time: To = None,
        cursor: Cursor = None,
        limit: WindowLimit = 20,
    ) -> Response:
        """List a node in the windows of its stream, by time."""
        check_access(request, stream)
        span = _page_range(from_time, to_time, cursor)
        return respond(request, store.read(lambda to: pages.read_node(to, stream, node, span, limit)))

    @routes.get(
        "/streams/{stream}/nodes/{node}/comparison", response_model=results.ComparisonFigures, responses=document(404)
    )
    def get_comparison(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        node: NodeName,
        label: Annotated[str, Query(max_length=256, description="the label that tells versions apart")] = VERSION_LABEL,
        candidate: Annotated[str | None, Query(max_length=256, description="the new version; else the newest")] = None,
        baseline: Annotated[str | None, Query(max_length=256, description="the other; else all others")] = None,
        from_time: From = None,
        to_time: To = None,
        max_loss_increase: MaxIncrease = MAX_LOSS_INCREASE,
        max_slow_increase: MaxIncrease = MAX_SLOW_INCREASE,
    ) -> Response:
        """Compare a new version at a node with the others, as `hopwatch compare --json` does."""
        check_access(request, stream)
        span_us = parse_range(from_time, to_time)
        query = ComparisonQuery(
            stream, node, label, candidate, baseline, *span_us, max_loss_increase, max_slow_increase
        )
        return respond(request, store.read(lambda to: pages.read_comparison(to, query)))

    @routes.get("/streams/{stream}/recent", response_model=results.RecentStream, responses=document(404))
    def get_recent(request: Request, stream: StreamName) -> Response:
        """Return throughput, lag and backlog of each node in the last ten seconds of arrival; provisional."""
        check_access(request, stream)
        return respond(request, store.read(lambda to: pages.read_recent(to, stream)))

    @routes.get("/streams/{stream}/hours", response_model=results.Hours, responses=document(404))
    def get_hours(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        from_time: From = None,
        to_time: To = None,
        cursor: Cursor = None,
        limit: WindowLimit = 24,
    ) -> Response:
        """List hours by time, each as `hopwatch report --by hour --json` shows it."""
        check_access(request, stream)
        span = _page_range(from_time, to_time, cursor)
        return respond(request, store.read(lambda to: pages.read_rollups(to, stream, span, limit, rollups.HOUR)))

    @routes.get("/streams/{stream}/days", response_model=results.Days, responses=document(404))
    def get_days(  # noqa: PLR0913, PLR0917 - its parameters
        request: Request,
        stream: StreamName,
        from_time: From = None,
        to_time: To = None,
        cursor: Cursor = None,
        limit: WindowLimit = 31,
    ) -> Response:
        """List days by time, each as `hopwatch report --by day --json` shows it."""
        check_access(request, stream)
        span = _page_range(from_time, to_time, cursor)
        return respond(request, store.read(lambda to: pages.read_rollups(to, stream, span, limit, rollups.DAY)))

    return routes


def _page_range(from_time: str | None, to_time: str | None, cursor: str | None) -> tuple[int | None, int | None]:
    """Return the range of a page, which begins at the cursor, if there is one."""
    from_us, to_us = parse_range(from_time, to_time)
    return (from_us, to_us) if cursor is None else (max(parse_cursor(cursor), from_us or 0), to_us)
