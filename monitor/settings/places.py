"""Where things are: the URLs and folders of a configuration, and what their relative paths are relative to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from probes.contract.kafka import SCHEME as KAFKA
from probes.contract.kafka import KafkaPlace

SPOOL: Final = "spool:"
SQLITE: Final = "sqlite:///"


def transport_url(value: object) -> str:
    """Return the URL of the transport: ``spool:`` and a folder, or a Kafka topic.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, str) and value.startswith(SPOOL) and value != SPOOL:
        return value
    if isinstance(value, str) and value.startswith(KAFKA):
        return str(KafkaPlace.parse(value))
    msg = (
        'a transport is a spool, "spool:FOLDER" such as "spool:./var/spool", or a Kafka topic, '
        f'"{KAFKA}HOST:PORT/TOPIC"; got {value!r:.80}'
    )
    raise ValueError(msg)


def store_url(value: object) -> str:
    """Return the URL of the store: ``sqlite:///`` and a file.

    Raises:
        ValueError: it is anything else, a database in memory too: what the monitor writes, the report has to read.
    """
    if isinstance(value, str) and value.startswith(SQLITE) and value not in {SQLITE, SQLITE + ":memory:"}:
        return value
    msg = (
        'this version stores in a SQLite file only: "sqlite:///FILE", such as "sqlite:///./var/hopwatch.db" '
        f"(four slashes before an absolute path); got {value!r:.80}"
    )
    raise ValueError(msg)


def folder(value: object) -> Path:
    """Return the folder.

    Raises:
        ValueError: it is no text, or empty.
    """
    if isinstance(value, str) and value:
        return Path(value)
    msg = f'a folder is a text such as "./var/monitor", got {value!r:.80}'
    raise ValueError(msg)


def anchored(layer: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Return the settings with their relative paths made absolute from ``base``; what is no path stays as it is."""
    anchored_layer = {name: dict(table) if isinstance(table, Mapping) else table for name, table in layer.items()}
    for table, key, scheme in (("transport", "url", SPOOL), ("store", "url", SQLITE), ("monitor", "workdir", "")):
        values = anchored_layer.get(table)
        value = values.get(key) if isinstance(values, dict) else None
        path = value.removeprefix(scheme) if isinstance(value, str) and value.startswith(scheme) else ""
        if path and path != ":memory:":
            anchored_layer[table][key] = f"{scheme}{base / path}"
    return anchored_layer
