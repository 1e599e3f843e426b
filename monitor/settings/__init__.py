"""All settings of the monitor, from flags, environment, file and defaults, checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from monitor.errors import Problem, SettingsError
from monitor.settings.layers import Layer, from_environ, from_file, from_flags
from monitor.settings.model import MonitorSettings, Settings, StoreSettings, StreamSettings, TransportSettings
from monitor.settings.places import anchored
from monitor.settings.problems import problems_of

__all__ = [
    "DEFAULTS",
    "MonitorSettings",
    "Settings",
    "StoreSettings",
    "StreamSettings",
    "TransportSettings",
    "load",
    "load_with_streams",
]

DEFAULTS: Final[Mapping[str, Mapping[str, str]]] = {
    "transport": {"url": "spool:./var/spool"},
    "store": {"url": "sqlite:///./var/hopwatch.db"},
    "monitor": {"workdir": "./var/monitor"},
}
"""The defaults that depend on where one stands; those of other keys are in the model."""


def load(
    path: Path | None, *, flags: Mapping[str, Any], environ: Mapping[str, str], named_by: str = "--config"
) -> Settings:
    """Read the settings: ``flags`` before ``environ`` before the file at ``path`` before the defaults.

    ``flags`` is nested as the file is, ``{"monitor": {"workdir": …}}``; a flag that is None was not given. Relative
    paths of the file and of the defaults are relative to the file, those of flags and environment, and all of them when
    there is no file, to the current folder. ``named_by`` is the flag that names the file, if one does.

    Raises:
        SettingsError: something is wrong with them; it holds all that is.
        ConfigurationError: the file cannot be read.
    """
    here = Path.cwd()
    base = here / path.parent if path else here
    file = from_file(path, named_by) if path else Layer()
    flag = from_flags(flags)
    streams = [name for layer in (flag, file) for name in _names(layer, "streams")]
    environment = from_environ(environ, streams, _names(file, "alerts", "channels"))
    try:
        return Settings(
            anchored(flag.values, here),
            anchored(environment.values, here),
            anchored(file.values, base),
            anchored(DEFAULTS, base),
        )
    except ValidationError as error:
        raise SettingsError(problems_of(error, (flag, environment, file))) from None


def load_with_streams(
    path: Path, *, flags: Mapping[str, Any], environ: Mapping[str, str], named_by: str = "--config"
) -> Settings:
    """Read the settings as :func:`load` does, for what is of no use without a stream.

    Raises:
        SettingsError: something is wrong with them, or they declare no stream.
        ConfigurationError: the file cannot be read.
    """
    settings = load(path, flags=flags, environ=environ, named_by=named_by)
    if not settings.streams:
        message = 'no stream is declared: add a table [streams.NAME] with path = "a -> b -> c"'
        raise SettingsError([Problem(message, "streams", str(path))])
    return settings


def _names(layer: Layer, *tables: str) -> list[str]:
    """Return the names of the tables that stand in a table of a layer."""
    found: Any = layer.values
    for table in tables:
        found = found.get(table) if isinstance(found, Mapping) else None
    return list(found) if isinstance(found, Mapping) else []
