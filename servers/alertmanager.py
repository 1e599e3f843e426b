"""Alertmanager: one instance by itself, which can be stopped and started again where it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from servers.process import PATIENCE_S, Process, answers, free_ports, installed, until

PROGRAM: Final = "prometheus-alertmanager"
TOOL: Final = "amtool"
PACKAGE: Final = "prometheus-alertmanager"
"""Debian's, which has both."""


class Alertmanager:
    """One instance on a port of its own, with a configuration that a test gives."""

    def __init__(self, folder: Path, configuration: str) -> None:
        """Write its configuration; nothing runs before :meth:`start`."""
        installed(PROGRAM, PACKAGE)
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "alertmanager.yml"
        self.config.write_text(configuration, "utf-8")
        (self.port,) = free_ports(1)
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, with what it remembers; returns when it answers."""
        flags = {
            "config.file": self.config,
            "storage.path": self.folder / "data",
            "web.listen-address": f"127.0.0.1:{self.port}",
            "cluster.listen-address": "",
        }
        command = [PROGRAM, *(f"--{name}={value}" for name, value in flags.items())]
        process = self._process = Process(command, self.folder / "alertmanager.log")
        until(lambda: process.check("Alertmanager") is None and answers(self.port), "Alertmanager")  # type: ignore[func-returns-value]

    def stop(self) -> None:
        """Ask it to end; what it was told of silences and notifications stays, alerts do not."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """Kill it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that it holds and that are not over, by its API."""
        with urlopen(f"{self.url}/api/v2/alerts", timeout=PATIENCE_S) as answer:  # noqa: S310 - of 127.0.0.1
            return list(json.load(answer))

    def groups(self) -> list[dict[str, Any]]:
        """Return its alerts in groups, by its API."""
        with urlopen(f"{self.url}/api/v2/alerts/groups", timeout=PATIENCE_S) as answer:  # noqa: S310 - as above
            return list(json.load(answer))


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run amtool and return what it says."""
    installed(TOOL, PACKAGE)
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60, check=False)
