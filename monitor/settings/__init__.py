"""All settings of the monitor, from flags, environment, file and defaults, checked before anything starts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from hopwatch.monitor.errors import Problem, SettingsError
from hopwatch.monitor.settings.layers import Layer, from_environ, from_file, from_flags
from hopwatch.monitor.settings.locations import resolve_paths
from hopwatch.monitor.settings.model import MonitorSettings, Settings, StoreSettings, StreamSettings, TransportSettings
from hopwatch.monitor.settings.problems import build_problems

__all__ = [
    "ALERTS",
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
"""Defaults that are relative to the configuration file; those of other keys are in the model."""

ALERTS: Final = ("alerts",)
"""Tables to ignore in commands that do not use alerts."""


def load(
    path: Path | None,
    *,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    named_by: str = "--config",
    without: Collection[str] = (),
) -> Settings:
    """Load the settings; flags override environment, environment overrides the file at ``path``, the file the defaults.

    ``flags`` is nested as the file is, ``{"monitor": {"workdir": …}}``; a flag that is None was not given. Relative
    paths of the file and of the defaults are relative to the file, those of flags and environment, and all of them when
    there is no file, to the current folder. ``named_by`` is the flag that names the file, if one does. ``without`` are
    tables to ignore: they have their defaults, and errors in them are not reported.

    Raises:
        SettingsError: the settings are wrong; it holds all problems.
        ConfigurationError: the file cannot be read.
    """
    found = _load(path, flags, environ, named_by, without)
    if found.problems:
        raise SettingsError(found.problems)
    return found.settings


def load_with_streams(
    path: Path, *, flags: Mapping[str, Any], environ: Mapping[str, str], named_by: str = "--config"
) -> Settings:
    """Load the settings as :func:`load` does, and require at least one stream.

    Raises:
        SettingsError: the settings are wrong, or declare no stream.
        ConfigurationError: the file cannot be read.
    """
    found = _load(path, flags, environ, named_by)
    message = 'no stream is declared: add a table [streams.NAME] with path = "a -> b -> c"'
    missing = [] if found.has_streams else [Problem(message, "streams", str(path))]
    if found.problems or missing:
        raise SettingsError([*found.problems, *missing])
    return found.settings


class _Loaded(NamedTuple):
    """Loaded settings, the defaults if there are problems; ``has_streams`` is true if any stream is declared."""

    settings: Settings
    problems: Sequence[Problem]
    has_streams: bool


def _load(
    path: Path | None,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    named_by: str,
    without: Collection[str] = (),
) -> _Loaded:
    here = Path.cwd()
    base = here / path.parent if path else here
    file = from_file(path, named_by) if path else Layer()
    flag = from_flags(flags)
    streams = [name for layer in (flag, file) for name in _table_names(layer, "streams")]
    channels, deliveries = _table_names(file, "alerts", "channels"), _table_names(file, "deliver")
    environment = from_environ(environ, streams, channels, deliveries)
    has_streams = bool(streams or _table_names(environment, "streams"))
    said = [(flag.values, here), (environment.values, here), (file.values, base), (DEFAULTS, base)]
    layers = [resolve_paths(_without_tables(values, without), around) for values, around in said]
    try:
        return _Loaded(Settings(*layers), (), has_streams)
    except ValidationError as error:
        return _Loaded(
            Settings(resolve_paths(DEFAULTS, base)), build_problems(error, (flag, environment, file)), has_streams
        )


def _without_tables(values: Mapping[str, Any], without: Collection[str]) -> dict[str, Any]:
    return {name: table for name, table in values.items() if name not in without}


def _table_names(layer: Layer, *tables: str) -> list[str]:
    """Return the names of the tables inside a table of a layer."""
    found: Any = layer.values
    for table in tables:
        found = found.get(table) if isinstance(found, Mapping) else None
    return list(found) if isinstance(found, Mapping) else []
