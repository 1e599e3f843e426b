"""Reports of a store while a test waits: read in this process, as a program takes longer to start than to read."""

from __future__ import annotations

import json
from typing import Any

from hopwatch.monitor.store import dialect, reader, schema


def reported(store_url: str) -> dict[str, Any]:
    """Return what ``hopwatch report --json`` would say; of a store that is not there yet, that there is nothing."""
    if not schema.has_store(store_url):
        return {"streams": [], "accounts": {"records": 0, "observations": 0}}
    engine = dialect.create_engine(store_url)
    try:
        told: dict[str, Any] = json.loads(json.dumps(reader.read_report(engine)))
    finally:
        engine.dispose()
    return told


def known_in(store_url: str) -> int:
    """Return how many messages are known in all windows."""
    return sum(int(window["known"]) for stream in reported(store_url)["streams"] for window in stream["windows"])
