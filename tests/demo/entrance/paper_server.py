"""A server on paper: answers requests with the words that it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from hopwatch.demo.entrance.registration import HOST

Answer = Callable[[str, Any], tuple[int, bytes]]
"""Returns status and body for a request: its method with its path, and its JSON."""


class PaperServer(HTTPServer):
    """Answers every request by ``answer``."""

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__((HOST, 0), _Handler)
        self.answer: Answer = lambda _, __: (200, b"{}")
        self.asked: list[tuple[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    server: PaperServer
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        """Answer."""
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert self.headers["content-type"] == "application/json"
        request = f"{self.command} {self.path}"
        self.server.asked.append((request, said))
        status, body = self.server.answer(request, said)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Answer."""
        self.do_PUT()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def run_server() -> Iterator[PaperServer]:
    """Yield a server that runs."""
    with PaperServer() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        made.shutdown()
