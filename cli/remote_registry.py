"""Registry behind a URL, which ``--registry`` names: ours, or one with Confluent's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hopwatch.monitor.errors import ConfigurationError

if TYPE_CHECKING:
    from hopwatch.probes.schema_registry import SchemaRegistry

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The registry that knows the schemas of Avro values, ours or one with Confluent's API."
    ),
]


def open_remote_registry(url: str) -> SchemaRegistry:
    """Open a registry, with the access that the environment says; nothing is connected yet.

    Raises:
        ConfigurationError: the URL, or what lets one in, cannot be.
    """
    from hopwatch.probes.environment import read_variables
    from hopwatch.probes.schema_registry import SchemaRegistry, read_registry_access

    try:
        return SchemaRegistry(url, read_registry_access(read_variables()))
    except ValueError as error:
        raise ConfigurationError(f"--registry: {error}") from None
