"""Markers of the versions of a stream's configuration: each is marked at the minute from which on it is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, delete

from hopwatch.monitor.markers import MAX_CHARS, Marker
from hopwatch.monitor.store import tables
from hopwatch.monitor.store.label_counts import MARKED_BY
from hopwatch.monitor.store.markers import insert_marker
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.monitor.version_changes import describe_changes

_BEGINNING: Final = "configuration: "
_marker = tables.markers.c


def mark_versions(
    connection: Connection, known: Mapping[str, StreamConfig], planned: Mapping[str, StreamConfig]
) -> None:
    """Mark the versions that are new, and take back the marks of those that never became valid."""
    for stream, config in planned.items():
        if stream not in known:
            continue
        before, now = _by_minute(known[stream]), _by_minute(config)
        for at_us in (at_us for at_us, version in before.items() if now.get(at_us) != version):
            is_own = (_marker.stream == stream, _marker.at_us == at_us, _marker.by == MARKED_BY)
            connection.execute(delete(tables.markers).where(*is_own, _marker.text.startswith(_BEGINNING)))
        for at_us, version in now.items():
            if before.get(at_us) != version and at_us > config.versions[-1].valid_from_us:
                text = _BEGINNING + "; ".join(describe_changes(config.at(at_us - 1), version))
                text = text if len(text) <= MAX_CHARS else f"{text[: MAX_CHARS - 1]}…"
                insert_marker(connection, Marker(at_us, text, MARKED_BY, stream))


def _by_minute(config: StreamConfig) -> dict[int, StreamConfig]:
    return {version.valid_from_us: replace(version, earlier=()) for version in config.versions}
