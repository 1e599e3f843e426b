"""All that a deployment by Compose is made of, in one value that a test can change and have judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hopwatch.cli.dashboard import HOST, PORT
from tests.repository.deployment import commands, compose, dockerfile
from tests.repository.deployment.compose import Tree
from tests.repository.deployment.dockerfile import Instruction

OWN_IMAGE: Final = "hopwatch"
ENVIRON: Final = {"POSTGRES_PASSWORD": "given-by-the-user"}
"""What whoever starts it has to set, and no more."""


@dataclass
class Deployment:
    """The Compose file as it is written, and the text of the Dockerfile."""

    raw: Tree = field(default_factory=compose.raw)
    dockerfile: str = field(default_factory=lambda: dockerfile.FILE.read_text("utf-8"))

    @cached_property
    def services(self) -> dict[str, Tree]:
        """The services, variables put in."""
        services: dict[str, Tree] = compose.interpolated(self.raw, ENVIRON)["services"]
        return services

    @cached_property
    def instructions(self) -> list[Instruction]:
        """The instructions of the Dockerfile."""
        return dockerfile.parse(self.dockerfile)

    @property
    def own(self) -> dict[str, Tree]:
        """The services that run the program."""
        return {name: service for name, service in self.services.items() if image_of(service) == OWN_IMAGE}

    def environment(self, name: str) -> dict[str, str]:
        """Return what a service finds in its environment, from its image and from the file."""
        service = self.services[name]
        below = dockerfile.environment(self.instructions) if image_of(service) == OWN_IMAGE else {}
        return below | compose.environment(service)


def image_of(service: Tree) -> str:
    """Return the name of a service's image, without its tag."""
    return str(service.get("image", "")).partition(":")[0]


def ends_by_itself(service: Tree) -> bool:
    """Return whether a service does one thing and ends."""
    return service.get("restart") == "no"


def is_monitor(service: Tree) -> bool:
    """Return whether a service runs the monitor."""
    return _runs(service, "run")


def is_pipeline(service: Tree) -> bool:
    """Return whether a service runs the demo's pipeline."""
    return _runs(service, "demo")


def dashboard_place(service: Tree) -> tuple[str, str]:
    """Return the host and the port at which a service shows the dashboard; empty where it shows none."""
    for words in commands.simple(service.get("command", [])):
        if words[:2] == [commands.PROGRAM, "dashboard"]:
            return commands.option(words, "--host") or HOST, commands.option(words, "--port") or str(PORT)
    return "", ""


def _runs(service: Tree, command: str) -> bool:
    return any(words[:2] == [commands.PROGRAM, command] for words in commands.simple(service.get("command", [])))
