"""A folder with a configuration, and the program run in it as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hopwatch.monitor import settings
from servers.process import Process
from tests.support.command_call import called
from tests.support.program import ProgramProcess, run_program
from tests.support.report import reported

ROOT = Path(__file__).parents[2]
PATIENCE_S = 600


@dataclass
class Workplace:
    """Folder of ``hopwatch.toml``; ``streams`` is the text of its streams, ``monitor`` more lines of that table."""

    folder: Path
    transport: str
    store: str = "sqlite:///./store.db"
    monitor: str = 'trigger = "10s"\npulse = "5s"'
    streams: str = '[streams.orders]\npath = "a -> b"\ntransit = "4s"\nsettle = "2s"'
    more: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Write the configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tables = f'[transport]\nurl = "{self.transport}"\n{self.more}\n[store]\nurl = "{self.store}"\n'
        tables += f'[monitor]\nworkdir = "./work"\n{self.monitor}\n{self.streams}\n'
        (self.folder / "hopwatch.toml").write_text(tables, "utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the program to its end."""
        if self._has_own_packages:
            return self._run_python("-m", "hopwatch", *arguments)
        return run_program(["hopwatch", *arguments], folder=self.folder, environ=self._environ, timeout=PATIENCE_S)

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Call the program in this process, where what it says is the point, not that it is a program."""
        return called(*arguments, folder=self.folder, environ=self.environ)

    def python(self, code: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run some Python as a program of its own, with more variables in its environment."""
        return self._run_python("-c", code, **environ)

    def start(self, *arguments: str, program: str = "hopwatch") -> Process:
        """Start the program, or one that stands for it; its words go to ``words.log`` in the folder."""
        command, log = [program, *arguments], self.folder / "words.log"
        if self._has_own_packages:
            return Process([sys.executable, "-m", *command], log, self._environ, self.folder)
        return ProgramProcess(command, log, self._environ, self.folder)

    def words(self) -> str:
        """Return what programs that were started have said."""
        log = self.folder / "words.log"
        return log.read_text("utf-8") if log.exists() else ""

    def report(self) -> dict[str, Any]:
        """Return ``hopwatch report --json``."""
        done = self.call("report", "--json")
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def reported(self) -> dict[str, Any]:
        """Return what that would say, looked up here: for whoever asks again and again."""
        return reported(self.store_url)

    @property
    def store_url(self) -> str:
        """Return the URL of the store in the present configuration."""
        return settings.load(self.folder / "hopwatch.toml", flags={}, environ=self.environ).store.url

    def _run_python(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=self.folder, env={**self._environ, **environ}, text=True,
            capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip

    @property
    def _has_own_packages(self) -> bool:
        """True if programs find other packages here than a fork has imported."""
        return "PYTHONPATH" in self.environ

    @property
    def _environ(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **self.environ}
