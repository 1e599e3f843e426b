"""The dashboard beside the pipeline: ``hopwatch dashboard`` as a process of its own, over the store of one run.

It is optional: if it fails, the demo prints a line about it and goes on.
"""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
from http import HTTPStatus
from importlib.util import find_spec
from types import TracebackType
from typing import Final, Self
from urllib.request import urlopen

from hopwatch.demo.layout import Layout
from hopwatch.demo.ports import HOST, hold_port
from hopwatch.demo.processes import PACKAGES, read_last_line

PORT: Final = 8501
"""Default port of ``hopwatch dashboard``."""
REQUIRED_PACKAGES: Final = ("streamlit", "uvicorn")
ADVICE: Final = "no dashboard: its packages are not installed, pip install 'hopwatch[monitor,dashboards]' brings them"
STOP_WITHIN_S: Final = 10.0
ANSWERS_WITHIN_S: Final = 1.0


class Dashboard:
    """``hopwatch dashboard`` over the files of one run. A context manager: the process ends with it."""

    def __init__(self, layout: Layout, port: int | None = PORT) -> None:
        """Take the files of the run, and where it is to listen: any free port if that is taken, nowhere if None."""
        self._layout, self._wished = layout, port
        self._log = layout.log("dashboard")
        self._port = 0
        self._held: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._news: list[str] = []
        self._is_up = False

    def __enter__(self) -> Self:
        """Start it, if it is wanted and possible; its output goes to its log."""
        if self._wished is None:
            return self
        if any(find_spec(package) is None for package in REQUIRED_PACKAGES):
            self._news.append(ADVICE)
            return self
        try:
            self._start(self._wished)
        except OSError as error:
            self._news.append(f"no dashboard: it cannot be started, {error.strerror or error}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, by SIGKILL if SIGTERM does not help."""
        if self._held:
            self._held.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def news(self) -> list[str]:
        """Return what is new about it since the last call: its address, or why it is not there."""
        if self._process is not None and (code := self._process.poll()) is not None:
            self._process = None
            words = read_last_line(self._log)
            self._news.append(f"no dashboard: it ended by itself with exit code {code}; {words} ({self._log})")
        elif self._process is not None and not self._is_up:
            self._is_up = _is_answering(self._port)
            if self._is_up:
                taken = "" if self._port == self._wished else f"port {self._wished} is taken; "
                self._news.append(f"{taken}the dashboard is at http://{HOST}:{self._port}/")
        said, self._news = self._news, []
        return said

    @property
    def later(self) -> str:
        """Return the command that shows the results of the run after the demo has ended."""
        return f"the dashboard of this run: hopwatch dashboard --config {shlex.quote(str(self._layout.config))}"

    def _start(self, wished: int) -> None:
        self._port, self._held = hold_port(wished)
        command = [sys.executable, "-m", "hopwatch", "dashboard", "--config", str(self._layout.config)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                [*command, "--port", str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PACKAGES,
                start_new_session=True,  # Ctrl-C is for the demo alone
            )


def _is_answering(port: int) -> bool:
    """Return whether the dashboard answers; it listens before it does."""
    try:
        with urlopen(f"http://{HOST}:{port}/_stcore/health", timeout=ANSWERS_WITHIN_S) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
