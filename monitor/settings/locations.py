"""URLs and folders of a configuration, and the base of their relative paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hopwatch.monitor.settings import gate, kafka, secrets
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaPlace
from hopwatch.probes.contract.segment import SCHEME as SPOOL

SQLITE_PREFIX: Final = "sqlite:///"
POSTGRES_DRIVER: Final = "postgresql+psycopg"
INTEGER_OPTIONS: Final = frozenset(
    {
        "connect_timeout",
        "keepalives",
        "keepalives_count",
        "keepalives_idle",
        "keepalives_interval",
        "tcp_user_timeout",
    }
)
"""Integer options of PostgreSQL's client."""
SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

_PASSWORD_PATTERNS: Final = (
    (re.compile(r"(:/*[^:/@]*):.*@"), r"\1:***@"),
    (re.compile(r"([?&](?:ssl)?password)=[^&]*", re.IGNORECASE), r"\1=***"),
)
"""Patterns of passwords in a URL, and their replacements."""


def parse_transport_url(value: object) -> str:
    """Parse the URL of the transport: ``spool:`` and a folder, or a Kafka topic.

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


def parse_store_url(value: object) -> str:
    """Parse the URL of the store: ``sqlite:///`` and a file, or ``postgresql+psycopg://`` and a database.

    Raises:
        ValueError: it is anything else, a database in memory too: what the monitor writes, the report has to read.
    """
    if (
        isinstance(value, str)
        and value.startswith(SQLITE_PREFIX)
        and value not in {SQLITE_PREFIX, SQLITE_PREFIX + ":memory:"}
    ):
        return value
    if isinstance(value, str) and _is_server_url(value):
        _check_options(make_url(value))
        return value
    msg = (
        'a store is a SQLite file, "sqlite:///FILE", such as "sqlite:///./var/hopwatch.db" (four slashes before an '
        f'absolute path), or a PostgreSQL database, "{POSTGRES_DRIVER}://USER@HOST:PORT/DATABASE"; '
        f"got {redact_value(value)}"
    )
    raise ValueError(msg)


def _is_server_url(value: str) -> bool:
    try:
        url = make_url(value)
    except (ArgumentError, ValueError):
        return False
    return url.drivername == POSTGRES_DRIVER and bool(url.database)


def _check_options(url: URL) -> None:
    """Check the query options of a database URL, as far as possible without a connection."""
    ssl_mode = url.query.get("sslmode")
    if ssl_mode is not None and ssl_mode not in SSL_MODES:
        raise ValueError(f"sslmode in the URL of a store is one of {', '.join(SSL_MODES)}; got {ssl_mode!r:.40}")
    for name in sorted(INTEGER_OPTIONS & url.query.keys()):
        if not str(url.query[name]).isdecimal():
            raise ValueError(f"{name} in the URL of a store is a whole number, got {url.query[name]!r:.40}")
    # Its import takes longer than all of the settings, and a store in a file does without it.
    from psycopg import ProgrammingError  # noqa: PLC0415
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    try:
        make_conninfo(**dict.fromkeys(url.query, "1"))
    except ProgrammingError as error:
        told = " ".join(str(error).split())
        raise ValueError(f"behind ? the URL of a store has options of PostgreSQL's client; got {told:.80}") from None


def redact_value(value: object) -> str:
    """Return a value for a message: short, and without a password."""
    text = repr(value)
    for secret, instead in _PASSWORD_PATTERNS:
        text = secret.sub(instead, text)
    return f"{text:.80}"


def parse_folder(value: object) -> Path:
    """Parse the path of a folder.

    Raises:
        ValueError: it is not a text, or empty.
    """
    if isinstance(value, str) and value:
        return Path(value)
    msg = f'a folder is a text such as "./var/monitor", got {value!r:.80}'
    raise ValueError(msg)


def resolve_paths(layer: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Resolve the relative paths of a layer from ``base``.

    Secrets of Kafka, channels, deliveries and the login have two forms, a key and a file: see
    :func:`kafka.reset_other_form` and :func:`secrets.reset_other_form`.
    """
    anchored_layer = {name: dict(table) if isinstance(table, Mapping) else table for name, table in layer.items()}
    for table, key, scheme in (
        ("transport", "url", SPOOL),
        ("store", "url", SQLITE_PREFIX),
        ("monitor", "workdir", ""),
    ):
        values = anchored_layer.get(table)
        value = values.get(key) if isinstance(values, dict) else None
        path = value.removeprefix(scheme) if isinstance(value, str) and value.startswith(scheme) else ""
        if path and path != ":memory:":
            anchored_layer[table][key] = f"{scheme}{base / path}"
    dashboard = anchored_layer.get("dashboard")
    login = dashboard.get("login") if isinstance(dashboard, dict) else None
    if isinstance(login, Mapping):
        anchored_layer["dashboard"]["login"] = _resolve_secrets(login, base)
    alerts = anchored_layer.get("alerts")
    channels = alerts.get("channels") if isinstance(alerts, dict) else None
    if isinstance(channels, Mapping):
        anchored_layer["alerts"]["channels"] = {name: _resolve_secrets(table, base) for name, table in channels.items()}
    deliveries = anchored_layer.get("deliver")
    if isinstance(deliveries, dict):
        anchored_layer["deliver"] = {name: _resolve_secrets(table, base) for name, table in deliveries.items()}
    if isinstance(anchored_layer.get("gate"), dict):
        anchored_layer["gate"] = gate.resolve_paths(anchored_layer["gate"], base)
    if isinstance(anchored_layer.get("api"), dict):
        anchored_layer["api"] = gate.resolve_tls(anchored_layer["api"], base)
    transport = anchored_layer.get("transport")
    access = transport.get("kafka") if isinstance(transport, dict) else None
    if isinstance(access, Mapping):
        anchored_layer["transport"]["kafka"] = kafka.reset_other_form(kafka.resolve_paths(access, base))
    return anchored_layer


def _resolve_secrets(table: object, base: Path) -> object:
    return secrets.reset_other_form(secrets.resolve_paths(table, base)) if isinstance(table, Mapping) else table
