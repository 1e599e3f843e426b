"""``hopwatch api``: serve the results of the store by HTTP."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hopwatch.cli import console, signals
from hopwatch.cli.configuration import DEFAULT_CONFIG, Config, load_settings
from hopwatch.monitor.clock import SystemClock
from hopwatch.monitor.errors import ConfigurationError, TransportError

if TYPE_CHECKING:
    from hopwatch.api.readers import Readers
    from hopwatch.monitor.settings import Settings

PORT: Final = 8082
HOST: Final = "127.0.0.1"


def command(
    config: Config = DEFAULT_CONFIG,
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
    health_port: Annotated[
        int | None,
        typer.Option("--health-port", min=1, max=65_535, help="Where health is served too, and nothing else."),
    ] = None,
) -> None:
    """Serve the results of the store by HTTP, see /openapi.json; any number may run beside each other."""
    if health_port == port:
        raise ConfigurationError(f"--health-port is another port than --port, got {port} for both")
    chosen = load_settings(config)
    from hopwatch.api.app import build_app
    from hopwatch.cli.server_address import build_address
    from hopwatch.monitor.store import schema
    from hopwatch.probes.http.granian_server import PortTakenError, serve_app

    schema.require_store(chosen.store.url)
    readers, clock, words, stop = build_readers(chosen), SystemClock(), console.stderr(), Event()
    listening = replace(build_address(chosen.api.tls, "api.tls", host, port), health_port=health_port)
    asks = "needs a token" if readers.is_token_required else "needs no token"
    told = f"hopwatch: the API is at {listening.url}, which {asks}; Ctrl-C ends it"
    with signals.stop_on_signals(stop):
        try:
            serve_app(build_app(chosen, readers, clock), listening, stop, lambda: words.print(told))
        except PortTakenError as error:
            raise TransportError(str(error)) from None


def build_readers(chosen: Settings) -> Readers:
    """Build the readers from their settings."""
    from hopwatch.api.readers import Reader, Readers

    found = []
    for name, said in chosen.api.readers.items():
        hashes = tuple(bytes.fromhex(one.partition(":")[2]) for one in said.tokens)
        expires_us = None if said.expires is None else round(said.expires.timestamp() * 1e6)
        found.append(Reader(name, hashes, frozenset(said.streams), expires_us, said.may_mark))
    return Readers(found, SystemClock())
