"""Receivers of deliveries, on this machine, which fail as a test says, and keep the ids that they have acknowledged."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import orjson

Answer = Callable[[list[str], int], int]
"""Function from the ids of a request and the number of requests before to a status; 0 hangs up without an answer."""

KEPT_REQUESTS: Final = 100


class HttpSink:
    """HTTP server that answers batches of events as a function says; thread-safe."""

    def __init__(self, answer: Answer | None = None) -> None:
        """Take the function; without one all is acknowledged."""
        self.answer: Answer = answer or (lambda *_: 200)
        self.acknowledged: Counter[str] = Counter()
        self.statuses: dict[str, list[int]] = {}
        """Statuses that each id was answered with."""
        self.requests = 0
        self.batches: list[int] = []
        self.order: list[str] = []
        """Ids that were acknowledged, in the order in which they were."""
        self.received: list[tuple[dict[str, str], bytes]] = []
        """Headers and body of the first requests."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._build_handler())
        self._server.daemon_threads = True
        self._server.request_queue_size = 128

    @property
    def url(self) -> str:
        """URL of the receiver."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/events"

    @contextmanager
    def serving(self) -> Iterator[HttpSink]:
        """Serve while the block runs."""
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def judge(self, ids: list[str]) -> int:
        """Return the status of a request, and note it."""
        with self._lock:
            status = self.answer(ids, self.requests)
            self.requests += 1
            self.batches.append(len(ids))
            for one in ids:
                self.statuses.setdefault(one, []).append(status)
            if 200 <= status < 300:
                self.acknowledged.update(ids)
                self.order += ids
            return status

    def _build_handler(self) -> type[BaseHTTPRequestHandler]:
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if len(sink.received) < KEPT_REQUESTS:
                    sink.received.append((dict(self.headers), body))
                status = sink.judge([one["id"] for one in orjson.loads(body)])
                if status == 0:
                    self.close_connection = True
                    return
                told = b"refused here" if status >= 300 else b""
                self.send_response(status)
                self.send_header("content-length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)

            def log_message(self, *_: Any) -> None:  # noqa: ANN401 - as the library has it
                """Say nothing."""

        return Handler
