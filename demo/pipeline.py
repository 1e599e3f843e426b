"""Processes of the pipeline: ingest to connector, and before them the sender and the gate where there is one."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from hopwatch.demo.entrance.settings import SenderSettings
from hopwatch.demo.faults import Faults
from hopwatch.demo.layout import Layout
from hopwatch.demo.links.run_links import Links
from hopwatch.demo.nodes.settings import NodeSettings
from hopwatch.demo.ports import hold_port
from hopwatch.demo.processes import Processes, Program
from hopwatch.demo.stream import GATE, SENDER


class Pipeline(Processes):
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
        line = (SENDER, *layout.nodes) if layout.gate else layout.nodes
        super().__init__(line, layout.log, faults.kills, now_s)
        self._layout = layout
        self._faults = faults
        self._rate_per_s = rate_per_s
        self._links = links
        self._gate_port = 0
        self._held: socket.socket | None = None

    def __enter__(self) -> Self:
        """Start the processes, the last one first."""
        if self._layout.gate:
            self._gate_port, self._held = hold_port(0)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End whatever still runs."""
        super().__exit__(kind, error, trace)
        if self._held:
            self._held.close()

    def describe_program(self, name: str) -> Program:
        """Return the program of a process."""
        if name == GATE:
            where = ["--config", str(self._layout.config), "--port", str(self._gate_port)]
            # The broker of a demo may be a single one.
            return Program(["hopwatch", "gate", *where, "--allow-weak"], ends_by_signal=True)
        if name == SENDER:
            return Program([f"hopwatch.demo.nodes.{name}", self._sender_settings().to_json()])
        arguments = [f"hopwatch.demo.nodes.{name}", self._settings(name).to_json()]
        return Program(arguments, descriptors=self._links.descriptors(name))

    def _sender_settings(self) -> SenderSettings:
        return SenderSettings(
            folder=str(self._layout.folder),
            port=self._gate_port,
            rate_per_s=self._rate_per_s,
            seed=self._faults.seed,
            faults=self._faults.select_node(GATE),
        )

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
