"""The configuration of a command: the option that names its file, and its settings; the environment enters here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

DEFAULT_CONFIG: Final = Path("hopwatch.toml")

Config = Annotated[Path, typer.Option("--config", help="The configuration file.")]


def load_settings(config: Path | None, *, has_alerts: bool = False) -> Settings:
    """Load the settings of a command; without ``has_alerts`` errors in ``[alerts]`` do not stop it.

    Raises:
        SettingsError: the settings are wrong; it holds all problems.
        ConfigurationError: the file cannot be read.
    """
    from hopwatch.monitor import settings  # a tap has none

    return settings.load(config, flags={}, environ=os.environ, without=() if has_alerts else settings.ALERTS)


def load_streams(config: Path, *, flags: Mapping[str, Any] | None = None, named_by: str = "--config") -> Settings:
    """Load all settings, and require a stream; ``named_by`` is the flag that names the file, if one does.

    Raises:
        SettingsError: the settings are wrong, or declare no stream.
        ConfigurationError: the file cannot be read.
    """
    from hopwatch.monitor import settings

    return settings.load_with_streams(config, flags=flags or {}, environ=os.environ, named_by=named_by)


def read_variable(name: str) -> str:
    """Return a variable of the environment; empty if it is not set."""
    return os.environ.get(name, "")
