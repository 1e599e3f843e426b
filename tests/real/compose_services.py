"""Services of docker-compose.yml, run without Docker with a real broker and database: commands, environment, files."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from servers import alertmanager, prometheus
from servers.kafka import JARS, Kafka
from servers.process import Process, free_ports, installed
from tests.real.program_folder import PATIENCE_S
from tests.repository import ROOT
from tests.repository.deployment import alerting, commands, compose
from tests.repository.deployment.deployment import Deployment

PREFIX: Final = "KAFKA_"
OF_JAVA: Final = "KAFKA_HEAP_OPTS"
"""The one variable of the broker's image that is no property of the broker."""
OF_DASHBOARD: Final = "8501"
"""The port of the dashboard, which its command names by itself."""
SERVERS: Final[dict[str, Callable[[], str]]] = {
    "prometheus": lambda: installed("prometheus", prometheus.PACKAGE),
    "alertmanager": lambda: installed(alertmanager.PROGRAM, alertmanager.PACKAGE),
}
"""The services whose images have a program of another project's, and where it is on this machine."""
_KNOWN: Final = 'id="brokerconfigs_'


def properties() -> dict[str, str]:
    """Return the properties that the image makes of the variables of the service ``kafka``."""
    environ = compose.environment(Deployment().services["kafka"])
    return {
        name.removeprefix(PREFIX).replace("_", ".").lower(): value for name, value in environ.items() if name != OF_JAVA
    }


def known_properties() -> set[str]:
    """Return the properties that a broker knows, as it lists them itself."""
    command = ["java", "-cp", f"{JARS}/*", "kafka.server.KafkaConfig"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {part.partition('"')[0] for part in listed.split(_KNOWN)[1:]}


class Broker(Kafka):
    """A broker with the properties of the service ``kafka``, on ports of this machine that are free."""

    def __init__(self, folder: Path) -> None:
        """Put free ports and a folder of its own in the place of the container's."""
        super().__init__(folder)
        (self.host_port,) = free_ports(1)
        (controller,) = self._controllers
        ports = {"9092": self.ports[0], "29092": self.host_port, "9093": controller}
        self.more = properties() | {"log.dirs": str(folder / "data")}
        for name in ("listeners", "advertised.listeners", "controller.quorum.voters"):
            self.more[name] = ",".join(_here(place, ports) for place in self.more[name].split(","))


def _here(place: str, ports: dict[str, int]) -> str:
    """Return a listener or a voter with this machine's address and another port."""
    before, _, port = place.rpartition(":")
    scheme = next(sign for sign in ("://", "@") if sign in before)
    return f"{before.partition(scheme)[0]}{scheme}127.0.0.1:{ports[port]}"


class Services:
    """The services but broker and database; what they name of others and of the container stands here instead."""

    def __init__(self, folder: Path, kafka: Kafka, store: str, password: str) -> None:
        """Make a ``hopwatch`` for their shell and the files that they mount; ``store`` is HOST:PORT/DATABASE."""
        self._deployment, self._folder = Deployment(), folder
        self.ports = dict(zip(("monitor", "dashboard", "prometheus", "alertmanager"), free_ports(4), strict=True))
        self._instead = {
            # First: what stands instead of others may have such digits in it.
            OF_DASHBOARD: str(self.ports["dashboard"]),
            "kafka:9092": kafka.bootstrap,
            "postgres:5432/hopwatch": store,
            "/var/lib/hopwatch": str(folder / "work"),
            "/tmp/demo": str(folder / "demo"),  # noqa: S108 - the container's own
            **self._addresses(),
        }
        self._password = password
        program = folder / "bin" / "hopwatch"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hopwatch "$@"\n', "utf-8")
        program.chmod(0o755)
        self._mount()

    def run(self, service: str) -> subprocess.CompletedProcess[str]:
        """Run a service to its end."""
        return self.call(service, *self._words(service))

    def start(self, service: str) -> Process:
        """Start a service; what it says goes to ``words.log`` in the folder, beside those of others."""
        return Process(self._words(service), self._folder / "words.log", self._environ(service), self._folder)

    def call(self, service: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command where a service runs, as ``docker compose exec`` does."""
        environ = self._environ(service)
        return subprocess.run(
            words, env=environ, cwd=self._folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    def is_healthy(self, service: str) -> bool:
        """Return whether the healthcheck of a service succeeds."""
        kind, *words = self._deployment.services[service]["healthcheck"]["test"]
        if kind == "CMD-SHELL":
            return self.call(service, "sh", "-c", self._here(*words)).returncode == 0
        if words[0] == "python":
            return self.call(service, sys.executable, *map(self._here, words[1:])).returncode == 0
        assert words[:-1] == ["wget", "-q", "-O", "/dev/null"]
        return _is_well(self._here(words[-1]))

    def is_up(self, service: str, process: Process) -> bool:
        """Return whether a started service is healthy; one that has ended is an error."""
        process.check(service)
        return self.is_healthy(service)

    def config(self) -> str:
        """Return the configuration that the services have."""
        return self._here("/etc/hopwatch/hopwatch.toml")

    def _addresses(self) -> dict[str, str]:
        """Return where each of the services listens here, by all that it is called there."""
        inside = {"monitor": "9464", "prometheus": "9090", "alertmanager": "9093"}
        hosts = ("127.0.0.1", "localhost", "0.0.0.0")  # noqa: S104 - the container's own
        return {
            f"{host}:{port}": f"127.0.0.1:{self.ports[name]}"
            for name, port in inside.items()
            for host in (name, *hosts)
        }

    def _mount(self) -> None:
        """Copy the files that services mount, and name folders for their volumes."""
        for name, service in self._deployment.services.items():
            for source, target, _ in compose.mounts(service):
                if source.startswith("."):
                    copy = self._folder / "mounted" / target.lstrip("/")
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_text(self._here((ROOT / source).read_text("utf-8")), "utf-8")
                    self._instead[target] = str(copy)
                elif name in SERVERS:
                    self._instead[f"={target}"] = f"={self._folder / name}"

    def _words(self, service: str) -> list[str]:
        words = [self._here(word) for word in self._deployment.services[service]["command"]]
        if service in SERVERS:
            return [SERVERS[service](), *words, f"{alerting.LISTENS}=127.0.0.1:{self.ports[service]}"]
        return [str(self._folder / "bin" / word) if word == commands.PROGRAM else word for word in words]

    def _environ(self, service: str) -> dict[str, str]:
        said = {name: self._here(value) for name, value in self._deployment.environment(service).items()}
        path = f"{self._folder / 'bin'}:{os.environ['PATH']}"
        return {**os.environ, **said, "PATH": path, "PGPASSWORD": self._password, "PYTHONPATH": str(ROOT)}

    def _here(self, text: str) -> str:
        for found, instead in self._instead.items():
            text = text.replace(found, instead)
        return text


def _is_well(url: str) -> bool:
    """Return whether a page is there."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - of 127.0.0.1
        return bool(answer.status == 200)
    return False
