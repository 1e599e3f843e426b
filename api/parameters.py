"""Parameters of requests: moments, pages and names, checked, with their place in the OpenAPI document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final

from fastapi import Path, Query, Request

from hopwatch.api.readers import SCOPE_KEY, Reader
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.texts import moments
from hopwatch.probes.contract.limits import NAME_PATTERN, WINDOW_US
from hopwatch.probes.http.problems import HttpProblem

MAX_WINDOWS: Final = 100
"""Windows, or hours and days, of one answer."""
MAX_ITEMS: Final = 1_000
"""Ids, probes or findings of one answer."""

_NAME: Final = f"^{NAME_PATTERN.pattern}$"
_MOMENT: Final = "ISO 8601, UTC where it names no zone, such as 2026-11-21T06:40:00Z"

StreamName = Annotated[str, Path(pattern=_NAME, description="a stream")]
NodeName = Annotated[str, Path(pattern=_NAME, description="a node of the stream")]
WindowStart = Annotated[str, Path(max_length=40, description=f"the start of a window, {_MOMENT}")]
OfStream = Annotated[str | None, Query(alias="stream", pattern=_NAME, description="only this stream")]
From = Annotated[str | None, Query(alias="from", max_length=40, description=f"from this moment on, {_MOMENT}")]
To = Annotated[str | None, Query(alias="to", max_length=40, description=f"before this moment, {_MOMENT}")]
Cursor = Annotated[
    str | None, Query(pattern="^[0-9]{1,19}$", description="`next` of the answer before: what follows it")
]
WindowLimit = Annotated[int, Query(alias="limit", ge=1, le=MAX_WINDOWS, description="windows of one answer")]
ItemLimit = Annotated[int, Query(alias="limit", ge=1, le=MAX_ITEMS, description="items of one answer")]


def check_access(request: Request, stream: str | None) -> None:
    """Check that the reader of a request may read a stream, or all of them.

    Raises:
        HttpProblem: it may not.
    """
    reader: Reader = request.scope[SCOPE_KEY]
    reader.check_stream(stream)


def parse_range(from_time: str | None, to_time: str | None) -> tuple[int | None, int | None]:
    """Parse both ends of a range to µs since 1970.

    Raises:
        HttpProblem: one is no time, or the range is empty.
    """
    try:
        return moments.parse_range_us(from_time, to_time, ("from", "to"))
    except ConfigurationError as error:
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", str(error)) from None


def parse_moment(name: str, text: str) -> int:
    """Parse a moment to µs since 1970.

    Raises:
        HttpProblem: it is no time.
    """
    try:
        return moments.parse_moment_us(name, text) or 0
    except ConfigurationError as error:
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", str(error)) from None


def parse_window(text: str) -> int:
    """Parse the start of a window to µs since 1970.

    Raises:
        HttpProblem: it is no time, or no whole minute.
    """
    start_us = parse_moment("the window", text)
    if start_us % WINDOW_US:
        told = f"a window starts at a whole UTC minute, got {text!r:.60}"
        raise HttpProblem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", told)
    return start_us


def parse_cursor(cursor: str | None) -> int:
    """Parse a cursor: where the answer before has ended; 0 without one."""
    return min(int(cursor or 0), 2**63 - 1)
