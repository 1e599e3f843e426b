"""Prometheus and its promtool: a server of its own in a folder of its own, which scrapes what a test serves."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from servers.process import Process, free_ports, installed, until

PATIENCE_S: Final = 240
PACKAGE: Final = "prometheus"
"""Debian's, which has both programs."""


def promtool(*arguments: str, told: str = "") -> tuple[int, str]:
    """Return exit code and words of promtool, which reads ``told``."""
    ended = subprocess.run(
        [installed("promtool", PACKAGE), *arguments],
        input=told,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


class Prometheus:
    """A server that scrapes every second."""

    def __init__(self, folder: Path, targets: Sequence[str], rules: Sequence[Path] = ()) -> None:
        """Write its configuration; it does not run before :meth:`start`."""
        (self.port,) = free_ports(1)
        self.folder = folder
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(path) for path in rules],
            "scrape_configs": [{"job_name": "hopwatch", "static_configs": [{"targets": list(targets)}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))

    def start(self) -> None:
        """Start it; returns when it answers."""
        command = [
            installed("prometheus", PACKAGE),
            f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        self.process = Process(command, self.folder / "prometheus.log")
        until(self._is_ready, "Prometheus does not answer")

    def stop(self) -> None:
        """Stop it."""
        self.process.stop()

    def _is_ready(self) -> bool:
        self.process.check("Prometheus")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def api(self, path: str, asked: Mapping[str, str] | None = None) -> Any:  # noqa: ANN401 - JSON
        """Return the data of an answer."""
        where = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(asked or {})}"
        with urllib.request.urlopen(where, timeout=PATIENCE_S) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return told["data"]

    def ask(self, query: str) -> dict[frozenset[tuple[str, str]], float]:
        """Return what a query finds now, by its labels."""
        found = self.api("query", {"query": query})["result"]
        return {frozenset(one["metric"].items()): float(one["value"][1]) for one in found}
