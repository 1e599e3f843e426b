"""``hopwatch mark``: mark a moment, such as a deploy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings, read_user_name
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.markers import Marker, marker_to_json
from hopwatch.monitor.results import format_iso
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.markers import add_marker
from hopwatch.monitor.texts.moments import parse_moment_us


def command(  # noqa: PLR0913, PLR0917 - one a flag
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What happened, such as 'deploy 1.4.2'.")],
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str, typer.Option("--stream", help="Only of this stream; all streams by default.")] = "",
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="A label; may be given again for others.")
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="The moment, ISO 8601; now by default.")] = None,
    by: Annotated[str, typer.Option("--by", help="Who marks it; the current user by default.")] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Mark a moment, such as a deploy, in the charts of a stream or of all streams."""
    chosen = load_settings(config)
    if stream:
        chosen.check_stream(stream)
    at_us = parse_moment_us("--at", at)
    labels = dict(_split_label(one) for one in label or ())
    now_us = SystemClock().now_us()
    marker = Marker(now_us if at_us is None else at_us, text, by or read_user_name(), stream, labels)
    schema.require_store(chosen.store.url)
    number = add_marker(dialect.create_engine(chosen.store.url), marker)
    if as_json:
        console.emit_json(marker_to_json(replace(marker, number=number)))
    else:
        console.stdout().print(format_marker(replace(marker, number=number)), soft_wrap=True)


def format_marker(marker: Marker) -> str:
    """Return a marker as a line."""
    where = marker.stream or "all streams"
    return f"marker {marker.number}: {format_iso(marker.at_us)}, {where}: {marker.describe()}, by {marker.by}"


def _split_label(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise ConfigurationError(f"a --label is NAME=VALUE, such as version=1.4.2, got {json.dumps(given)[:80]}")
    return name, value
