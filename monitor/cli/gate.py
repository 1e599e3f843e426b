"""``hopwatch gate``: the registry by HTTP, over the configured store."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import Annotated, Final

import typer

from monitor import settings
from monitor.cli import console, signals
from monitor.clock import SystemClock
from monitor.errors import TransportError
from monitor.store import dialect, schema

PORT: Final = 8081
"""Where clients look for a registry of Confluent's."""
HOST: Final = "127.0.0.1"


def command(
    config: Annotated[Path, typer.Option("--config", help="The configuration file.")] = Path("hopwatch.toml"),
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
) -> None:
    """Keep the schemas of streams, see /openapi.json; clients of Confluent's registry find it here too."""
    chosen = settings.load(config, flags={}, environ=os.environ)
    from monitor.store.subjects import StoredShelves
    from probes.gate.app import app
    from probes.http.serve import PortTakenError, check_port, serve
    from probes.registry.subjects import Registry

    try:
        check_port(host, port)
    except PortTakenError as error:
        raise TransportError(str(error)) from None
    engine = dialect.engine(chosen.store.url)
    schema.prepare(engine)
    words, stop = console.words(), Event()
    with signals.ending(stop):
        shown = f"[{host}]" if ":" in host else host
        told = f"hopwatch: the gate is at http://{shown}:{port}/, which asks nobody who they are; Ctrl-C ends it"
        serve(app(Registry(StoredShelves(engine, SystemClock()))), host, port, stop, lambda: words.print(told))
