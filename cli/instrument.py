"""``hopwatch instrument``: run a service in Python so that its messages are stamped, without a change of it.

It is OpenTelemetry's launcher with the settings that Hopwatch needs: its instrumentations put themselves around the
clients of Kafka, and our propagator stamps. What a service has configured of OpenTelemetry stays as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import typer

from hopwatch.cli import console
from hopwatch.cli.program_argument import check_program
from hopwatch.monitor.errors import ConfigurationError
from hopwatch.probes.contract.limits import NAME_PATTERN
from hopwatch.probes.environment import SINK_VARIABLE, read_variables
from hopwatch.probes.sinks import open_sink

LAUNCHER: Final = "opentelemetry-instrument"
SERVICE_VARIABLE: Final = "OTEL_SERVICE_NAME"
PROPAGATORS_VARIABLE: Final = "OTEL_PROPAGATORS"
DEFAULT_PROPAGATORS: Final = "tracecontext,baggage"
PROPAGATOR: Final = "hopwatch"
ENDPOINT: Final = "OTEL_EXPORTER_"
"""Beginning of the variables by which a service says where its traces go."""
EXPORTERS: Final = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER")
INSTRUMENTATIONS: Final = {
    client: f"opentelemetry-instrumentation-{client}" for client in ("confluent-kafka", "aiokafka", "kafka-python")
}
"""The package that instruments each client."""
_INSTALL: Final = "install it where the service is"


def command(
    program: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The service, with its arguments.")],
    *,
    service: Annotated[
        str | None, typer.Option("--service", help=f"Its name, a node; by default {SERVICE_VARIABLE}.")
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option("--sink", metavar="URL", help=f"The sink of its stamps; by default {SINK_VARIABLE}."),
    ] = None,
) -> None:
    """Run a service so that its messages are stamped.

    The service takes the place of this process, and gets all signals. Each topic is a stream of its own name, and the
    service a node of it.
    """
    environment = build_environment(read_variables(), service, sink)
    launcher = Path(sys.executable).with_name(LAUNCHER)
    found = str(launcher) if launcher.is_file() else shutil.which(LAUNCHER)
    if found is None:
        raise ConfigurationError(f"{LAUNCHER} is not there: {_INSTALL}, by 'pip install opentelemetry-distro'")
    check_program(program)
    for line in describe_missing({one.name.lower() for one in metadata.distributions()}):
        console.stderr().print(f"hopwatch instrument: {line}")
    os.execve(found, [found, *program], environment)  # noqa: S606 - what the user asks for


def build_environment(variables: Mapping[str, str], service: str | None, sink: str | None) -> dict[str, str]:
    """Return the variables of the service: those that are set, and what stamping needs.

    Raises:
        ConfigurationError: service or sink are missing, or invalid.
    """
    name = service or variables.get(SERVICE_VARIABLE, "")
    if not NAME_PATTERN.fullmatch(name):
        told = f"a service has a name of 1 to 128 of the characters A-Za-z0-9._-, got {name!r:.160}"
        raise ConfigurationError(f"{told}: say it by --service")
    url = sink or variables.get(SINK_VARIABLE, "")
    try:
        open_sink(url, name)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{error}: say it by --sink") from None
    propagators = variables.get(PROPAGATORS_VARIABLE) or DEFAULT_PROPAGATORS
    if PROPAGATOR not in propagators.split(","):
        propagators = f"{propagators},{PROPAGATOR}"
    built = dict(variables) | {SERVICE_VARIABLE: name, SINK_VARIABLE: url, PROPAGATORS_VARIABLE: propagators}
    if not any(one.startswith(ENDPOINT) for one in variables):
        # Its traces go nowhere: by default an SDK tries a collector on this machine, and complains.
        built = dict.fromkeys(EXPORTERS, "none") | built
    return built


def describe_missing(installed: Collection[str]) -> list[str]:
    """Describe which messages will not be stamped, as clients are here whose instrumentation is not."""
    here = [client for client in INSTRUMENTATIONS if client in installed]
    if not here:
        return [f"no message will be stamped: none of {', '.join(INSTRUMENTATIONS)} is installed here"]
    return [
        f"messages of {client} will not be stamped: {_INSTALL}, by 'pip install {INSTRUMENTATIONS[client]}'"
        for client in here
        if INSTRUMENTATIONS[client] not in installed
    ]
