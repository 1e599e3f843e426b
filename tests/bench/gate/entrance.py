"""An entrance to test the load with: answers as it is told, and keeps what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """Server that records the method, path, head and body of each request."""

    port: int
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def entrance(status: int = 201, *, hangs_up: bool = False) -> Iterator[Asked]:
    """Yield an entrance that answers every event with a status, or hangs up instead."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the answer waits for the client's acknowledgement of its head.
        wbufsize = -1

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            head = {name.lower(): value for name, value in self.headers.items()}
            asked.requests.append((self.command, self.path, head, body))
            if hangs_up:
                self.close_connection = True
                return
            self.send_response(200 if self.command == "GET" else status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_PUT = do_POST = _answer  # noqa: N815 - as the library has it

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    asked = Asked(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
