"""Metric of a page that Prometheus could scrape."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import httpcore
from prometheus_client.parser import text_string_to_metric_families

from hopwatch.scale.metric import MetricUnavailableError

TIMEOUT_S: Final = 5.0
"""Time for all of a page, however slowly it comes."""
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024
MAX_REASON_CHARS: Final = 200
"""Characters of an error that are told: it may repeat all of a stranger's page."""
OK: Final = 200


class SampleSelector(NamedTuple):
    """Name of a sample, and labels that it has among others."""

    name: str
    labels: Mapping[str, str]

    def __str__(self) -> str:
        """Return it as Prometheus writes it."""
        inside = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        return f"{self.name}{{{inside}}}" if inside else self.name


class MetricPage:
    """Reader of one sample of a page."""

    def __init__(self, url: str, selector: SampleSelector, pool: httpcore.ConnectionPool | None = None) -> None:
        """Take the URL and the sample; nothing is asked for before :meth:`read`.

        Raises:
            ValueError: it is no URL of HTTP.
        """
        parsed = httpcore.URL(url)
        if parsed.scheme not in {b"http", b"https"} or not parsed.host:
            raise ValueError(f"a page of metrics is http://HOST:PORT/metrics, got {url!r:.200}")
        self._url, self._selector = url, selector
        self._backend = _DeadlineBackend()
        self._pool = httpcore.ConnectionPool(network_backend=self._backend) if pool is None else pool

    def read(self) -> float:
        """Return the value of the sample.

        Raises:
            MetricUnavailableError: the page cannot be had, or has no such sample, or several.
        """
        return find_sample(self._load(), self._selector)

    def _load(self) -> str:
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT_S)
        self._backend.deadline_s = time.monotonic() + TIMEOUT_S
        try:
            with self._pool.stream("GET", self._url, extensions={"timeout": timeouts}) as answer:
                if answer.status != OK:
                    raise MetricUnavailableError(f"{self._url} answers {answer.status}, not {OK}")
                body = bytearray()
                for part in answer.iter_stream():
                    body += part
                    if len(body) > MAX_PAGE_BYTES:
                        raise MetricUnavailableError(f"{self._url} has more than {MAX_PAGE_BYTES:,} bytes")
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, UnicodeError) as error:
            why = str(error) or type(error).__name__
            raise MetricUnavailableError(f"{self._url} cannot be read: {why:.{MAX_REASON_CHARS}}") from None
        return body.decode("utf-8", "replace")


def parse_selector(text: str) -> SampleSelector:
    """Parse a name with labels, such as ``hopwatch_end_to_end_lag_seconds{stream="orders",quantile="0.95"}``.

    Raises:
        ValueError: it is none.
    """
    try:
        # A sample without its value.
        (sample,) = (one for family in text_string_to_metric_families(f"{text} 0\n") for one in family.samples)
    except (ValueError, LookupError):  # the parser itself falls over some texts
        raise ValueError(f'a metric is NAME or NAME{{label="value",...}}, got {text!r:.200}') from None
    return SampleSelector(sample.name, sample.labels)


def find_sample(page: str, selector: SampleSelector) -> float:
    """Return the value of the one sample that a selector names.

    Raises:
        MetricUnavailableError: there is none, or there are several, or it is no number.
    """
    try:
        found = [
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == selector.name and selector.labels.items() <= sample.labels.items()
        ]
    except (ValueError, LookupError) as error:  # the parser itself falls over some texts
        why = f"{error!s:.{MAX_REASON_CHARS}}"
        raise MetricUnavailableError(f"the page of metrics cannot be parsed: {why}") from None
    if not found:
        raise MetricUnavailableError(f"the page of metrics has no sample {selector}")
    if len(found) > 1:
        raise MetricUnavailableError(f"the page of metrics has {len(found)} samples {selector}: name more labels")
    if not math.isfinite(found[0]):
        raise MetricUnavailableError(f"{selector} is {found[0]}, which is no number")
    return found[0]


class _DeadlineBackend(httpcore.NetworkBackend):
    """Network whose connections end what they do at one deadline: a page may come byte by byte for ever."""

    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()
        self.deadline_s = 0.0

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the deadline counts
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._inner.connect_tcp(host, port, self.left_s(), local_address, socket_options)
        return _DeadlineStream(stream, self)

    def left_s(self) -> float:
        left_s = self.deadline_s - time.monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout(f"it did not come within {TIMEOUT_S:g} s")
        return left_s


class _DeadlineStream(httpcore.NetworkStream):
    """Connection of such a network."""

    def __init__(self, inner: httpcore.NetworkStream, backend: _DeadlineBackend) -> None:
        self._inner, self._backend = inner, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the deadline counts
        return self._inner.read(max_bytes, self._backend.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the deadline counts
        self._inner.write(buffer, self._backend.left_s())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the deadline counts
    ) -> httpcore.NetworkStream:
        return _DeadlineStream(
            self._inner.start_tls(ssl_context, server_hostname, self._backend.left_s()), self._backend
        )

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as httpcore has it
        return self._inner.get_extra_info(info)
