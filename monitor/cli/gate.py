"""``hopwatch gate``: the entrances of streams and the registry by HTTP, over the configured store."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final

import typer

from monitor import settings
from monitor.cli import console, signals
from monitor.clock import SystemClock
from monitor.errors import TransportError
from monitor.store import dialect, schema

if TYPE_CHECKING:
    from monitor.settings import Settings
    from probes.gate.gate import Gate

PORT: Final = 8081
"""Where clients look for a registry of Confluent's."""
HOST: Final = "127.0.0.1"


def command(
    config: Annotated[Path, typer.Option("--config", help="The configuration file.")] = Path("hopwatch.toml"),
    port: Annotated[int, typer.Option("--port", min=1, max=65_535, help="Where to listen.")] = PORT,
    host: Annotated[str, typer.Option("--host", help="The address to listen at; this machine's own alone.")] = HOST,
) -> None:
    """Let events into streams and keep their schemas, see /openapi.json; Confluent's clients find the registry here."""
    chosen = settings.load(config, flags={}, environ=os.environ)
    from monitor.store.subjects import StoredShelves
    from probes.gate.app import app
    from probes.gate.outlets import OutletError
    from probes.http.serve import PortTakenError, check_port, serve
    from probes.registry.subjects import Registry

    gate = gate_of(chosen)
    try:
        check_port(host, port)
        gate.check_now()
    except (PortTakenError, OutletError) as error:
        raise TransportError(str(error)) from None
    engine = dialect.engine(chosen.store.url)
    schema.prepare(engine)
    words, stop = console.words(), Event()
    with signals.ending(stop):
        shown = f"[{host}]" if ":" in host else host
        told = f"hopwatch: the gate is at http://{shown}:{port}/, which asks nobody who they are; Ctrl-C ends it"
        served = app(Registry(StoredShelves(engine, SystemClock())), gate)
        serve(served, host, port, stop, lambda: words.print(told))


def gate_of(chosen: Settings) -> Gate:
    """Return the gate that is configured, with an entrance for each of its streams."""
    from probes.clock import SystemClock
    from probes.gate.gate import Gate
    from probes.gate.intake import Entrance, Intake
    from probes.gate.judging import Terms
    from probes.gate.outlets import open_outlet
    from probes.gate.stamping import Stamping
    from probes.sinks import open_sink
    from probes.sinks.kafka import KafkaSink

    clock, access = SystemClock(), chosen.transport.access
    intakes = {}
    for stream, entrance in chosen.gate.streams.items():
        subject = entrance.subject or stream
        instance = f"{stream}.{entrance.node}.gate-{os.getpid()}.{clock.wall_ns()}"
        place = chosen.transport.kafka_place
        sink = (
            open_sink(chosen.transport.url, instance, clock)
            if place is None
            else KafkaSink(place, instance, clock, access=access)
        )
        intakes[stream] = Intake(
            Entrance(stream, subject, Terms(chosen.streams[stream].max_age_us, ())),
            open_outlet(entrance.to, stream, access, clock),
            open_outlet(entrance.rejected_url(stream), "", access, clock),
            stamping=Stamping(stream, entrance.node, sink, clock),
            clock=clock,
        )
    return Gate(intakes, clock)
