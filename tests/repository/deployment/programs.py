"""Rules: every command line calls a program that its image has, and those of ``hopwatch`` are ones that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.repository.deployment import commands, compose, dockerfile
from tests.repository.deployment.deployment import Deployment, ends_by_itself, image_of

PROGRAMS: Final = {
    "apache/kafka": {"/opt/kafka/bin/kafka-broker-api-versions.sh"},
    "postgres": {"pg_isready"},
    # Upon BusyBox.
    "prom/prometheus": {"/bin/prometheus", "wget"},
    "prom/alertmanager": {"/bin/alertmanager", "wget"},
    # The program and the Python that runs it; the others no Debian is without.
    "hopwatch": {"hopwatch", "python", "sh", "find", "grep"},
}
"""What each image has, of what is called."""
ENTRYPOINTS: Final = {"prom/prometheus": "/bin/prometheus", "prom/alertmanager": "/bin/alertmanager"}
"""The program that some images put before the command, which is its flags; ``tests/real`` starts both with them."""
GOES_ON: Final = ("run", "dashboard", "demo")
"""The commands that end when they are told to."""


def programs_are_there(deployment: Deployment) -> Iterator[str]:
    """Commands and healthchecks call what the image has."""
    for name, service in deployment.services.items():
        known = PROGRAMS.get(image_of(service), set())
        for command in (*_commands(service), *_checks(service)):
            if command[0] not in known:
                yield f"{name}: calls {command[0]}, which the image {image_of(service)} is not known to have"
    for command in commands.of_script(dockerfile.health_command(deployment.instructions)):
        if command[0] not in PROGRAMS["hopwatch"]:
            yield f"Dockerfile: its healthcheck calls {command[0]}, which the image is not known to have"


def command_lines_are_taken(deployment: Deployment) -> Iterator[str]:
    """The program takes each of its command lines, and each names the configuration that is mounted."""
    lines = [("Dockerfile", dockerfile.command(deployment.instructions))]
    lines += [(name, command) for name, service in deployment.own.items() for command in _commands(service)]
    mounted = {name: {target for _, target, _ in compose.mounts(service)} for name, service in deployment.own.items()}
    for name, command in lines:
        if command[0] != commands.PROGRAM:
            continue
        told = commands.refusal(*command[1:])
        if told:
            yield f"{name}: {' '.join(command)}: {told}"
        config = commands.option(command, "--config")
        if name in mounted and config is not None and config not in mounted[name]:
            yield f"{name}: --config {config} is a file that is not mounted"


def own_services_run_the_program(deployment: Deployment) -> Iterator[str]:
    """Each says what it runs of it, and one that is started again whenever it ends is one that goes on."""
    for name, service in deployment.own.items():
        called = [command for command in _commands(service) if command[0] == commands.PROGRAM]
        if not called:
            yield f"{name}: does not say what it runs of hopwatch"
        elif not ends_by_itself(service) and not any(word in GOES_ON for command in called for word in command[1:2]):
            yield f"{name}: is started again whenever it ends, and its command is one that ends"


def _commands(service: compose.Tree) -> list[list[str]]:
    first = ENTRYPOINTS.get(image_of(service))
    command = [*([first] if first else []), *service.get("command", [])]
    return list(commands.simple(command)) if command else []


def _checks(service: compose.Tree) -> list[list[str]]:
    test = service.get("healthcheck", {}).get("test")
    return list(commands.of_healthcheck(test)) if test else []


RULES: Final = (programs_are_there, command_lines_are_taken, own_services_run_the_program)
