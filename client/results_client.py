"""Client of the query API: results of a store as typed records; see docs/API.md. It needs no extra."""

from __future__ import annotations

import json
import ssl
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from http.client import HTTPException
from typing import Any, Final, TypeVar, Union, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from hopwatch import __version__
from hopwatch.client import results
from hopwatch.client.errors import ResultsError

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
MAX_POLL_S: Final = 60
"""Longest wait that the API takes for one answer."""

Record = TypeVar("Record")


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is no answer: the token would go wherever it leads."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


class ResultsClient:
    """Results of one store, asked of its API; safe from any thread."""

    def __init__(
        self, url: str, *, token: str = "", timeout_s: float = 30.0, context: ssl.SSLContext | None = None
    ) -> None:
        """Take the URL of the API, and the token of the reader; nothing is connected yet.

        Raises:
            ValueError: it is no URL of HTTP.
        """
        if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise ValueError(f"the URL of an API is http://HOST:PORT or https://HOST:PORT, got {url[:200]!r}")
        self._url, self._timeout_s = url.rstrip("/"), timeout_s
        self._headers = {"User-Agent": f"hopwatch/{__version__}"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        self._opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context), _NoRedirect())

    def streams(self) -> tuple[results.ListedStream, ...]:
        """Return the streams that may be read.

        Raises:
            ResultsError: the API is not there, or refuses.
        """
        return self._get(results.Streams, "/streams").streams

    def windows(self, stream: str, begin: str | None = None, end: str | None = None) -> Iterator[results.Window]:
        """Yield the windows that start in ``[begin, end)``, ISO 8601, page by page.

        Raises:
            ResultsError: as ever.
        """
        path, span = f"/streams/{quote(stream, '')}/windows", {"from": begin, "to": end}
        page = self._get(results.Windows, path, **span)
        yield from page.windows
        while page.next is not None:
            page = self._get(results.Windows, path, cursor=page.next, **span)
            yield from page.windows

    def window(self, stream: str, start: str) -> results.Window:
        """Return the window that starts at a moment.

        Raises:
            ResultsError: there is none, or as ever.
        """
        return self._get(results.Window, f"/streams/{quote(stream, '')}/windows/{quote(start, '')}")

    def hours(self, stream: str, begin: str | None = None, end: str | None = None) -> tuple[results.SpanFigures, ...]:
        """Return the first 100 hours that start in ``[begin, end)``.

        Raises:
            ResultsError: as ever.
        """
        path = f"/streams/{quote(stream, '')}/hours"
        return self._get(results.Hours, path, limit=100, **{"from": begin, "to": end}).hours

    def lost_ids(self, stream: str, start: str, node: str) -> Iterator[str]:
        """Yield the ids that are missing at a node in a window, page by page.

        Raises:
            ResultsError: as ever.
        """
        path = f"/streams/{quote(stream, '')}/windows/{quote(start, '')}/lost/{quote(node, '')}"
        page = self._get(results.MissingIds, path, limit=1_000)
        yield from page.ids
        while page.next is not None:
            page = self._get(results.MissingIds, path, limit=1_000, cursor=page.next)
            yield from page.ids

    def journey(self, message_id: str, stream: str | None = None) -> results.MessageJourney:
        """Return where a message is missing.

        Raises:
            ResultsError: as ever.
        """
        return self._get(results.MessageJourney, f"/messages/{quote(message_id, '')}", stream=stream)

    def completeness(self, contract: str, until: str, *, wait_s: int = 0) -> results.SpanCompleteness:
        """Return the answer of a contract; wait so long at most, up to 60 s, until it is complete or will not be.

        Raises:
            ResultsError: there is no such contract, the moment is in the future, or as ever.
        """
        wait_s = min(wait_s, MAX_POLL_S)
        return self._get(results.SpanCompleteness, "/completeness", contract=contract, until=until, wait=wait_s)

    def comparison(
        self, stream: str, node: str, *, label: str = "version", candidate: str | None = None
    ) -> results.ComparisonFigures:
        """Return how a new version at a node compares with all others; the newest, if none is named.

        Raises:
            ResultsError: the node does not say two values of the label, or as ever.
        """
        path = f"/streams/{quote(stream, '')}/nodes/{quote(node, '')}/comparison"
        return self._get(results.ComparisonFigures, path, label=label, candidate=candidate)

    def recent(self, stream: str) -> results.RecentStream:
        """Return throughput, lag and backlog of each node in the last seconds of arrival; provisional.

        Raises:
            ResultsError: the store has no recent figures of the stream, or as ever.
        """
        return self._get(results.RecentStream, f"/streams/{quote(stream, '')}/recent")

    def _get(self, of: type[Record], path: str, **query: str | int | None) -> Record:
        said = urlencode({name: value for name, value in query.items() if value is not None})
        asked = Request(f"{self._url}/v1{path}?{said}", headers=self._headers)  # noqa: S310 - checked to be HTTP
        waits_s = self._timeout_s + float(query.get("wait") or 0)
        try:
            with self._opener.open(asked, timeout=waits_s) as answer:
                body = answer.read(MAX_ANSWER_BYTES)
        except HTTPError as error:
            with error:
                raise ResultsError(error.code, _read_detail(error.read(65_536), error.reason)) from None
        except (URLError, HTTPException, OSError) as error:
            raise ResultsError(0, f"the API does not answer: {getattr(error, 'reason', error)}") from None
        try:
            return cast("Record", parse_record(of, json.loads(body)))
        except (ValueError, KeyError, TypeError):
            raise ResultsError(0, "the answer is none of this API: is the URL that of hopwatch api?") from None


def _read_detail(body: bytes, reason: str) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return reason


def parse_record(of: Any, value: Any) -> Any:  # noqa: ANN401 - whatever a field of a record is
    """Return JSON as a record; what a newer API says beside its fields is left out."""
    if isinstance(of, type) and is_dataclass(of):
        hints = _find_types(of)
        given = {field.name: field for field in fields(of)}
        return of(**{name: parse_record(hints[name], value[name]) for name in given if name in value})
    origin, inner = typing.get_origin(of), typing.get_args(of)
    if origin in {Union, types.UnionType}:
        return None if value is None else parse_record(inner[0], value)
    return tuple(parse_record(inner[0], one) for one in value) if origin is tuple else value


@cache
def _find_types(of: type) -> dict[str, Any]:
    return typing.get_type_hints(of)
