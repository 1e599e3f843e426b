"""The configuration of a command: the option that names its file, and its settings; the environment enters here."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

DEFAULT_CONFIG: Final = Path("hopwatch.toml")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
"""The option for one JSON object instead of words."""
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


def parse_span_us(flag: str, text: str, *, may_be_zero: bool = False) -> int:
    """Parse the span of a flag to µs.

    Raises:
        ConfigurationError: it is of no form that a configuration takes, or zero where it may not be.
    """
    from hopwatch.monitor.errors import ConfigurationError
    from hopwatch.monitor.settings import durations

    try:
        return durations.parse_duration_us(text) if may_be_zero else durations.parse_positive_us(text)
    except ValueError as error:
        raise ConfigurationError(f"{flag}: {error}") from None


def read_variable(name: str) -> str:
    """Return a variable of the environment; empty if it is not set."""
    return os.environ.get(name, "")


def read_user_name() -> str:
    """Return the name of the current user; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
