"""Cluster of Kafka brokers on this machine, of the jars that ``make servers`` fetches (ADR 0177)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from confluent_kafka.admin import AdminClient

from hopwatch.demo.server_process import Process, ServerError, answers, free_ports, until
from hopwatch.monitor.spark import archive

JARS: Final = Path(sys.prefix) / "jars" / "broker"
JAVA: Final = ("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CLASS_PATH: Final = ("-cp", f"{JARS}/*")
ARCHIVE: Final = "broker"
"""The name of the archive of a broker's classes, beside that of Spark's."""
BOOTSTRAP: Final = "bootstrap.checkpoint"
IDENTITY: Final = "meta.properties"
BROKER_TO_FORMAT: Final = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:9093
log.dirs={folder}/data
"""
"""The least that the tool which formats a broker's storage wants to know."""


class BrokerCluster:
    """A cluster of so many brokers; ``more`` are lines for the properties of each, who talk by ``listener``.

    Beyond ports, folders and what so few brokers need they run with the defaults of Kafka, as a user's do: for one,
    they make each topic that somebody asks for and that is not there.
    """

    def __init__(
        self, folder: Path, brokers: int = 1, more: Mapping[str, str] | None = None, listener: str = "PLAINTEXT"
    ) -> None:
        """Choose ports; nothing is written and nothing runs before :meth:`start`.

        Raises:
            ServerError: the jars are not there.
        """
        if not JARS.is_dir():
            advice = "run 'make servers' in a checkout of Hopwatch, which needs Maven, or name brokers that run"
            raise ServerError(f"the brokers' jars are not in {JARS}: {advice}")
        self.folder, self.size, self.more, self.listener = folder, brokers, dict(more or {}), listener
        ports = free_ports(2 * brokers)
        self.ports, self._controllers = ports[:brokers], ports[brokers:]
        self._processes: dict[int, Process] = {}
        self._cluster = uuid.uuid4().hex[:22]
        self.java = [*JAVA, *archive.java_flags(ARCHIVE), *CLASS_PATH]

    @property
    def bootstrap(self) -> str:
        """Return the brokers, as clients want them."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, *, is_open: bool = True) -> None:
        """Format the storage and start all brokers; returns when all answer, those that are not open by their port.

        Raises:
            ServerError: they do not start, or the storage cannot be made.
        """
        for number in range(self.size):
            self._format(number)
        for number in range(self.size):
            self.launch(number)
        if is_open:
            self.wait()
        else:
            until(lambda: all(map(answers, self.ports)), "a broker")

    def wait(self) -> None:
        """Wait until every broker that runs answers and knows the others."""
        for number, process in self._processes.items():
            until(lambda at=number, one=process: one.check("a broker") is None and answers(self.ports[at]), "a broker")  # type: ignore[misc]
        running = len(self._processes)
        until(lambda: len(self.admin().list_topics(timeout=10).brokers) >= running, "the cluster")

    def kill(self, number: int) -> None:
        """Kill a broker as a power cut would."""
        self._processes.pop(number).kill()

    def end(self, number: int, patience_s: float) -> None:
        """Ask a broker to end, and wait until it has."""
        self._processes.pop(number).stop(patience_s)

    def restart(self, number: int) -> None:
        """Start a broker that was killed or stopped."""
        self.launch(number)
        self.wait()

    def stop(self) -> None:
        """End all brokers and delete what they kept."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def admin(self) -> AdminClient:
        """Return a client that may change topics, and makes none by asking for it."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "allow.auto.create.topics": False})

    def launch(self, number: int) -> None:
        """Start a broker that does not run; returns at once."""
        properties = self._place(number) / "server.properties"
        command = [*self.java, "kafka.Kafka", str(properties)]
        self._processes[number] = Process(command, self._place(number) / "broker.log")

    def _format(self, number: int) -> None:
        place = self._place(number)
        place.mkdir(parents=True)
        properties = place / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties(number).items()), "utf-8")
        data = Path(self._properties(number)["log.dirs"])
        data.mkdir()
        (data / BOOTSTRAP).write_bytes(_bootstrap())
        (data / IDENTITY).write_text(f"version=1\ncluster.id={self._cluster}\nnode.id={number + 1}\n", "utf-8")

    def _properties(self, number: int) -> dict[str, str]:
        port, controller = self.ports[number], self._controllers[number]
        voters = ",".join(f"{at + 1}@127.0.0.1:{port}" for at, port in enumerate(self._controllers))
        replicas = str(min(3, self.size))
        return {
            "process.roles": "broker,controller",
            "node.id": str(number + 1),
            "listeners": f"{self.listener}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"{self.listener}://127.0.0.1:{port}",
            "inter.broker.listener.name": self.listener,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "log.dirs": str(self._place(number) / "data"),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        } | self.more

    def _place(self, number: int) -> Path:
        return self.folder / f"broker-{number + 1}"


@cache
def _bootstrap() -> bytes:
    """Return the first records of a cluster's metadata, the same for all; a JVM writes them once a process."""
    with TemporaryDirectory() as folder:
        properties = Path(folder) / "server.properties"
        properties.write_text(BROKER_TO_FORMAT.format(folder=folder), "utf-8")
        tool = [*JAVA, *archive.java_flags(ARCHIVE), *CLASS_PATH, "kafka.tools.StorageTool"]
        command = [*tool, "format", "-t", uuid.uuid4().hex[:22], "-c", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a tool of the jars
        if done.returncode:
            raise ServerError(f"a broker's storage cannot be made: {done.stdout}{done.stderr}")
        return (Path(folder) / "data" / BOOTSTRAP).read_bytes()
