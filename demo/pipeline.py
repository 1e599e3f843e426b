"""Processes of the pipeline: start, watch, kill and restart them as requested, and stop them one after the other."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import hopwatch
from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.faults import Faults
from hopwatch.demo.layout import Layout
from hopwatch.demo.links.run_links import Links
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.ports import hold_port
from hopwatch.demo.stream import GATE, NODES, SENDER
from hopwatch.monitor.errors import DependencyError, HopwatchError

RESTART_AFTER_S: Final = 3.0
PACKAGES: Final = Path(hopwatch.__file__).parents[1]
"""Working directory of the process, from which it imports this package."""


class NodeDiedError(HopwatchError):
    """A node's process ended without a stop request; where a link failed, its exit code becomes the demo's."""

    def __init__(self, message: str, code: int) -> None:
        """Take the exit code of the process."""
        super().__init__(message)
        own = HopwatchError.exit_code
        self.exit_code = code if code == DependencyError.exit_code else own  # type: ignore[misc]


class Pipeline:
    """The processes of one run. A context manager: whatever happens, none of them outlives it."""

    def __init__(
        self,
        layout: Layout,
        links: Links,
        faults: Faults,
        rate_per_s: float,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the run's files and links, what is to go wrong, and how many messages a second there are to be."""
        self._layout = layout
        self._faults = faults
        self._rate_per_s = rate_per_s
        self._now_s = now_s
        self._links = links
        self._line = (SENDER, *layout.nodes) if layout.gate else layout.nodes
        """The processes, in the order in which messages pass them."""
        self._gate_port = 0
        self._held: socket.socket | None = None
        self._told: set[str] = set()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._kills = list(faults.kills)
        self._restarts_s: dict[str, float] = {}
        self._started_s = 0.0

    def __enter__(self) -> Self:
        """Start the processes, the last one first."""
        self._started_s = self._now_s()
        if self._layout.gate:
            self._gate_port, self._held = hold_port(0)
        for node in reversed(self._line):
            self._start(node)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever still runs."""
        for process in self._processes.values():
            process.kill()
            _close_input(process)
            process.wait()
        if self._held:
            self._held.close()

    def watch(self) -> list[str]:
        """Do the kills and restarts that are due, and say in a line each what was done.

        Raises:
            NodeDiedError: a node ended by itself.
        """
        done: list[str] = []
        for node, due_s in list(self._restarts_s.items()):
            if self._now_s() >= due_s:
                self._start(node)
                done.append(f"{node} is started again")
        self._check_alive()
        while self._kills and self._now_s() - self._started_s >= self._kills[0].at_s:
            node = self._kills[0].node
            if node in self._restarts_s:
                break  # it is dead already: its next kill waits until it is back
            self._kills.pop(0)
            self._kill(node)
            done.append(f"{node} is killed (SIGKILL)")
        return done

    def drain(self) -> str | None:
        """Let the first node that still runs drain and end; return its name, or ``None`` once all have ended.

        Raises:
            NodeDiedError: a node failed on its way out.
        """
        self._kills.clear()
        for node in list(self._restarts_s):
            self._start(node)  # what waits in its link has to be drained too
        for node in self._line:
            process = self._processes[node]
            if process.poll() is None:
                self._tell_to_end(node)
                return node
            self._check_exit(node, allowed=0)
        return None

    def _start(self, node: str) -> None:
        with self._layout.log(node).open("ab") as log:
            self._processes[node] = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                [sys.executable, "-m", *self._program(node)],
                stdin=subprocess.PIPE,  # the node drains and ends when we close it, or die
                stdout=log,
                stderr=log,
                cwd=PACKAGES,
                pass_fds=self._links.descriptors(node) if node in NODES else (),
                start_new_session=True,  # Ctrl-C is for the demo alone
            )
        self._restarts_s.pop(node, None)

    def _program(self, process: str) -> list[str]:
        """Return the module that a process runs, and its arguments."""
        if process == GATE:
            where = ["--config", str(self._layout.config), "--port", str(self._gate_port)]
            # The broker of a demo may be a single one.
            return ["hopwatch", "gate", *where, "--allow-weak"]
        settings = self._sender_settings() if process == SENDER else self._settings(process)
        return [f"hopwatch.demo.nodes.{process}", settings.to_json()]

    def _sender_settings(self) -> SenderSettings:
        return SenderSettings(
            folder=str(self._layout.folder),
            port=self._gate_port,
            rate_per_s=self._rate_per_s,
            seed=self._faults.seed,
            faults=self._faults.select_node(GATE),
        )

    def _tell_to_end(self, process: str) -> None:
        if process not in self._told and process == GATE:
            self._processes[process].terminate()
        elif process not in self._told:
            _close_input(self._processes[process])
        self._told.add(process)

    def _settings(self, node: str) -> NodeSettings:
        return NodeSettings(
            node=node,
            folder=str(self._layout.folder),
            ends=self._links.ends(node),
            sink=self._layout.sink_url,
            rate_per_s=self._rate_per_s,
            seed=self._faults.seed,
            faults=self._faults.select_node(node),
        )

    def _kill(self, node: str) -> None:
        process = self._processes[node]
        process.kill()
        _close_input(process)
        process.wait()
        self._restarts_s[node] = self._now_s() + RESTART_AFTER_S

    def _check_alive(self) -> None:
        for node, process in self._processes.items():
            if node not in self._restarts_s and process.poll() is not None:
                self._check_exit(node, allowed=None)

    def _check_exit(self, node: str, allowed: int | None) -> None:
        code = self._processes[node].returncode
        if code != allowed:
            log = self._layout.log(node)
            raise NodeDiedError(f"{node} ended by itself with exit code {code}; {read_last_line(log)} ({log})", code)


def read_last_line(log: Path) -> str:
    """Return the last line of a log in words: what a process said before it ended."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    said = [line.strip() for line in lines if line.strip()]
    return f"its last words: {said[-1]}" if said else "it said nothing"


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
