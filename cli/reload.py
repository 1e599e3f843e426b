"""Reload of the streams' configuration while the monitor runs: what of a changed file may be taken up, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hopwatch.cli.config_watch import ConfigWatch
from hopwatch.cli.configuration import load_streams
from hopwatch.monitor.errors import ConfigurationError, SettingsError

if TYPE_CHECKING:
    from hopwatch.monitor.settings import Settings

_STARTUP_TABLES: Final = ("transport", "store", "monitor", "alerts", "metrics", "completeness", "results", "selftest")
"""Tables that a running monitor has taken up once, beside the streams; all others are of other commands."""


@dataclass(slots=True)
class ConfigReload:
    """The settings in force, and the file that may change them; ``problem`` says why its last change was refused.

    ``is_postponed`` says that a change waits to be read again.
    """

    config: Path
    flags: Mapping[str, Any]
    settings: Settings
    watch: ConfigWatch = field(init=False)
    problem: str = ""
    is_postponed: bool = False

    def __post_init__(self) -> None:
        """Begin to watch the file."""
        self.watch = ConfigWatch(self.config)

    def read_changes(self) -> bool | None:
        """Read the file again if it has changed; return None if it has not, and False if it is refused.

        True says that the settings are those of the file now; ``problem`` is empty then.
        """
        if not self.watch.has_changed():
            self.is_postponed = False
            return None
        try:
            changed = load_streams(self.config, flags=self.flags)
        except (SettingsError, ConfigurationError) as error:
            self.problem = str(error)
            return False
        others = [name for name in _STARTUP_TABLES if getattr(changed, name) != getattr(self.settings, name)]
        if others:
            tables = " and ".join(f"[{name}]" for name in others)
            self.problem = f"changes of {tables} take a restart of the monitor, and until then those of streams do, too"
            return False
        self.problem, self.settings = "", changed
        return True

    def postpone(self, settings: Settings) -> None:
        """Go back to the settings that were in force, and read the file again with the next look."""
        self.settings, self.is_postponed = settings, True
        self.watch.request()
