"""``hopwatch markers``: list and remove markers."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from hopwatch.cli import console
from hopwatch.cli.configuration import DEFAULT_CONFIG, AsJson, Config, load_settings
from hopwatch.cli.mark import format_marker
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.monitor.markers import marker_to_json
from hopwatch.monitor.store import dialect, schema
from hopwatch.monitor.store.markers import query_markers, remove_marker
from hopwatch.monitor.texts.moments import parse_range_us

END_US: Final = (1 << 63) - 1

command = typer.Typer(help="List and remove markers.", no_args_is_help=True)


@command.callback()
def _markers() -> None:
    """List and remove markers."""


@command.command("list")
def list_(
    config: Config = DEFAULT_CONFIG,
    stream: Annotated[str | None, typer.Option("--stream", help="Only what this stream's charts show.")] = None,
    from_time: Annotated[str | None, typer.Option("--from", help="From this moment on, ISO 8601.")] = None,
    to_time: Annotated[str | None, typer.Option("--to", help="Before this moment.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List markers by time, the latest 200 of a range."""
    chosen = load_settings(config)
    if stream is not None:
        chosen.check_stream(stream)
    from_us, to_us = parse_range_us(from_time, to_time)
    schema.require_store(chosen.store.url)
    with schema.open_snapshot(dialect.create_engine(chosen.store.url)) as connection:
        found = query_markers(connection, stream, from_us or 0, END_US if to_us is None else to_us)
    if as_json:
        console.emit_json({"markers": [marker_to_json(one) for one in found]})
        return
    for one in found:
        console.stdout().print(format_marker(one), soft_wrap=True)
    if not found:
        console.stdout().print("no marker is there")


@command.command()
def remove(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The marker, as markers list shows it.")],
    config: Config = DEFAULT_CONFIG,
    *,
    as_json: AsJson = False,
) -> None:
    """Remove a marker."""
    chosen = load_settings(config)
    schema.require_store(chosen.store.url)
    if not remove_marker(dialect.create_engine(chosen.store.url), number):
        raise ConfigurationError(f"there is no marker {number}: hopwatch markers list shows them")
    if as_json:
        console.emit_json({"number": number})
    else:
        console.stdout().print(f"marker {number} is removed")
