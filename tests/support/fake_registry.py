"""Schema registry without a network: answers by path, and one over the gate's own app."""

from __future__ import annotations

from typing import Any

import orjson

from hopwatch.probes.schema_registry import RegistryAccess, SchemaRegistry
from tests.gate.app_client import Asked

UNKNOWN = {"error_code": 40403, "message": "Schema 7 not found"}


class FakeRegistry(SchemaRegistry):
    """Registry that answers what a test says, by path; anything else is 404."""

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        """Take the answers: bodies of a 200, or status and body."""
        super().__init__("http://registry:8081", RegistryAccess())
        self.answers = answers or {}
        self.asked: list[str] = []

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:  # noqa: ARG002 - of a client
        self.asked.append(path)
        found = self.answers.get(path, (404, UNKNOWN))
        if isinstance(found, Exception):
            raise found
        status, said = found if isinstance(found, tuple) else (200, found)
        return status, said if isinstance(said, bytes) else orjson.dumps(said)


class GateRegistry(SchemaRegistry):
    """Registry of the gate's app."""

    def __init__(self, asked: Asked) -> None:
        """Take the app."""
        super().__init__("http://gate", RegistryAccess())
        self._app = asked

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        more = {} if body is None else {"content": body, "headers": {"content-type": "application/json"}}
        answer = self._app.ask(method, path, **more)
        return answer.status_code, answer.content
