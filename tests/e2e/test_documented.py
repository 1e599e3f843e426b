"""README and QUICKSTART as a newcomer follows them: files are written, commands run, their output compared."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.repository import ROOT
from tests.support import page_blocks
from tests.support.page_blocks import Command
from tests.support.report import reported
from tests.support.spool_traffic import rest

PATIENCE_S: Final = 300
FEWER: Final = ("--rate", "200", "--minutes", "0.3")
"""So few messages are made: which lines the demo prints is the point, and each has its figures."""
SELDOM: Final = {"HOPWATCH_MONITOR__TRIGGER": "15s"}
"""A running monitor reads so seldom, not every 5 s: each time costs a second of processor, and says the same."""
WAIT: Final = "sleep "
README: Final = page_blocks.page("README.md")
QUICKSTART: Final = page_blocks.page("docs/QUICKSTART.md")


class Desk:
    """A folder in which somebody types what a page shows; ``hopwatch`` and ``python`` are those under test."""

    def __init__(self, folder: Path, text: str) -> None:
        """Write the files that the page shows."""
        self.folder = folder / "desk"
        self._started: list[subprocess.Popen[bytes]] = []
        programs = folder / "programs"
        self.folder.mkdir()
        programs.mkdir()
        for name, words in (("hopwatch", [sys.executable, "-m", "hopwatch"]), ("python", [sys.executable])):
            (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (programs / name).chmod(0o755)
        packages = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        self._environ = {**os.environ, "PATH": path, "PYTHONPATH": packages, "COLUMNS": "120", **SELDOM}
        for name, content in page_blocks.files(text).items():
            (self.folder / name).write_text(content)

    def type(self, command: Command) -> None:
        """Run a command line, and compare what it prints; one that ends in ``&`` goes on beside the next ones.

        Where a page says to wait some seconds, it is waited until every window is final.
        """
        line = command.line
        if line.endswith("&"):
            self._started.append(self._start(line.removesuffix("&")))
            return
        if line.startswith(WAIT):
            self._await_final()
            line = line.partition("; ")[2]
        run = ["bash", "-c", line]
        ended = subprocess.run(
            run, cwd=self.folder, env=self._environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert page_blocks.is_printed(command.output, ended.stdout), (line, ended.stdout, ended.stderr)

    def end(self) -> list[int]:
        """End what goes on, as Ctrl-C does, and return the exit codes."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        return [process.wait(PATIENCE_S) for process in self._started]

    def _start(self, line: str) -> subprocess.Popen[bytes]:
        with (self.folder / "beside.log").open("ab") as log:
            return subprocess.Popen(
                shlex.split(line),
                cwd=self.folder,
                env=self._environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_final(self) -> None:
        store = f"sqlite:///{self.folder / 'var' / 'hopwatch.db'}"
        for _ in rest(PATIENCE_S):
            assert [process.poll() for process in self._started] == [None] * len(self._started), self._log()
            windows = [window for stream in reported(store)["streams"] for window in stream["windows"]]
            if any(window["known"] and window["status"] == "FINAL" for window in windows):
                return
        pytest.fail(f"no window was final within {PATIENCE_S} s: {self._log()}")

    def _log(self) -> str:
        return (self.folder / "beside.log").read_text()


def _follow(desk: Desk, commands: list[Command]) -> None:
    for command in commands:
        desk.type(command)


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[list[Desk]]:
    """Yield a list of desks; whatever still runs there is ended."""
    del tmp_path
    desks: list[Desk] = []
    yield desks
    for desk in desks:
        desk.end()


def test_the_demo_prints_what_readme_shows(tmp_path: Path) -> None:
    """Its figures are those of each run; which lines there are, and that all of them agree, is not."""
    (command,) = [one for one in page_blocks.commands(README) if one.line.startswith("make demo ")]
    (arguments,) = [word.removeprefix("ARGS=") for word in shlex.split(command.line) if word.startswith("ARGS=")]
    words = ["hopwatch", "demo", *shlex.split(arguments), *FEWER, "--no-dashboard", "--workdir", str(tmp_path / "demo")]
    ended = subprocess.run(
        [sys.executable, "-m", *words],
        env={**os.environ, **SELDOM},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert page_blocks.is_printed(command.output, ended.stdout, has_other_figures=True), ended.stdout


@pytest.mark.usefixtures("early_in_a_minute")
def test_the_pipeline_of_readme_runs_as_it_stands(tmp_path: Path, ended: list[Desk]) -> None:
    """Two processes, eight lines of configuration, a running monitor and its report: 20 of 1,000 are lost."""
    ended.append(desk := Desk(tmp_path, README))
    (configuration,) = page_blocks.of(README, "toml")
    (desk.folder / "hopwatch.toml").write_text(configuration)
    _follow(desk, [one for one in page_blocks.commands(README) if not one.line.startswith("make ")])
    assert desk.end() == [0]


@pytest.mark.usefixtures("early_in_a_minute")
def test_the_quickstart_prints_what_it_shows(tmp_path: Path) -> None:
    """From the first configuration to the exit code that a build asks for."""
    _follow(Desk(tmp_path, QUICKSTART), page_blocks.commands(QUICKSTART))
