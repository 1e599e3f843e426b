"""Where a run keeps its files, and the configuration that its monitor reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from demo.nodes import NODES, PATH, STREAM
from monitor.errors import ConfigurationError

TRANSIT_S: Final = 20
SETTLE_S: Final = 15

TOML: Final = f"""\
# The monitor of the demo. Messages pass the pipeline in milliseconds, and the probes report every two seconds:
# so windows can be final 35 s after their end, where 180 s would be usual.
[transport]
url = "spool:./spool"

[store]
url = "sqlite:///./hopwatch.db"

[streams.{STREAM}]
path = "{PATH}"
transit = "{TRANSIT_S}s"
settle = "{SETTLE_S}s"
amend_for = "2m"
"""


class WorkdirError(ConfigurationError):
    """The demo cannot keep its files where it was told to."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one run, all below one folder."""

    folder: Path

    @property
    def config(self) -> Path:
        """Return the monitor's configuration."""
        return self.folder / "hopwatch.toml"

    @property
    def spool(self) -> Path:
        """Return the folder that the probes write into, and the monitor reads."""
        return self.folder / "spool"

    @property
    def store_url(self) -> str:
        """Return the address of the monitor's results."""
        return f"sqlite:///{self.folder / 'hopwatch.db'}"

    @property
    def checkpoints(self) -> Path:
        """Return the folder in which the monitor keeps how far it has come."""
        return self.folder / "monitor"

    @property
    def logs(self) -> Path:
        """Return the folder of what the processes print."""
        return self.folder / "logs"

    @property
    def output(self) -> Path:
        """Return the folder that connector writes its flights to."""
        return self.folder / "flights"

    def log(self, process: str) -> Path:
        """Return the file that takes what ``process`` prints."""
        return self.logs / f"{process}.log"

    def truth_log(self, node: str) -> Path:
        """Return where ``node`` notes what it does to messages."""
        return self.folder / "truth" / f"{node}.truth"

    def untold_log(self, node: str) -> Path:
        """Return where ``node`` notes what the transport of its probe refused."""
        return self.folder / "truth" / f"{node}.untold"

    def truth_logs(self) -> dict[str, tuple[Path, Path]]:
        """Return the logs of each node."""
        return {node: (self.truth_log(node), self.untold_log(node)) for node in NODES}


def default_folder(now: datetime | None = None) -> Path:
    """Return a folder that no other run has: ``var/demo/`` and the time, below the current one."""
    return Path("var") / "demo" / (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H-%M-%SZ")


def lay_out(folder: Path) -> Layout:
    """Make the folders of a run and write the monitor's configuration.

    Raises:
        WorkdirError: ``folder`` holds files already, or cannot be written.
    """
    layout = Layout(folder.absolute())
    try:
        layout.folder.mkdir(parents=True, exist_ok=True)
        if any(layout.folder.iterdir()):
            raise WorkdirError(f"{folder} is not empty: every run wants a folder of its own, name a new one")
        for part in (layout.spool, layout.logs, layout.output, layout.folder / "truth"):
            part.mkdir()
        layout.config.write_text(TOML, encoding="utf-8")
    except OSError as error:
        raise WorkdirError(f"the demo cannot write to {folder}: {error.strerror}; name another folder") from error
    return layout
