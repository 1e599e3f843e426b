"""Rules: images are pinned, nobody is root, what a service may write and use is bounded, and its health is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import hopwatch
from tests.repository import ROOT
from tests.repository.deployment import compose, dockerfile
from tests.repository.deployment.deployment import OWN_IMAGE, Deployment, ends_by_itself, image_of, is_monitor

PINNED: Final = re.compile(r"[a-z0-9./-]+:v?\d+(\.\d+)+([-.][a-z0-9.]+)*")
ROOTS: Final = ("", "root", "0")
WRITABLE: Final = {"kafka"}
"""Whose image writes into its own folders at every start."""
CONDITIONS: Final = ("service_healthy", "service_completed_successfully")
BROKER_VERSION: Final = re.compile(r"<artifactId>kafka_2\.13</artifactId>\s*<version>([^<]+)</version>")


def pinned(deployment: Deployment) -> Iterator[str]:
    """Every image has a tag of one version: ours that of the program, Kafka's that of the broker of the tests."""
    for name, service in deployment.services.items():
        image = service.get("image", "")
        if not PINNED.fullmatch(image):
            yield f"{name}: the image {image!r} is not pinned to a version"
    for base in dockerfile.bases(deployment.instructions):
        if not PINNED.fullmatch(base):
            yield f"Dockerfile: the image {base!r} is not pinned to a version"
    tested = BROKER_VERSION.search((ROOT / "jars" / "broker.pom.xml").read_text("utf-8"))
    expected = {OWN_IMAGE: hopwatch.__version__, "apache/kafka": tested[1] if tested else ""}
    for name, service in deployment.services.items():
        version = expected.get(image_of(service))
        if version and service["image"].partition(":")[2] not in ("", version):
            yield f"{name}: the image is {service['image']}, the tests are of {version}"


def nobody_is_root(deployment: Deployment) -> Iterator[str]:
    """Every service names a user who is not root, ours the one that the image makes."""
    for name, service in deployment.services.items():
        if str(service.get("user", "")).partition(":")[0] in ROOTS:
            yield f"{name}: runs as root"
    users = dockerfile.of_last_stage(deployment.instructions, "USER")
    if not users or users[-1].partition(":")[0] in ROOTS:
        yield "Dockerfile: the image runs as root"
    for name, service in deployment.own.items():
        if users and service.get("user") != users[-1]:
            yield f"{name}: runs as {service.get('user')}, the image is made for {users[-1]}"


def confined(deployment: Deployment) -> Iterator[str]:
    """No capabilities, a root file system that cannot be written, bounds on processors, memory and logs."""
    for name, service in deployment.services.items():
        if service.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in service.get("security_opt", []):
            yield f"{name}: has capabilities, or may gain privileges"
        if service.get("read_only") is not True and name not in WRITABLE:
            yield f"{name}: its root file system can be written"
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        if not {"cpus", "memory"} <= set(limits):
            yield f"{name}: has no limit on processors or memory"
        if "max-size" not in service.get("logging", {}).get("options", {}):
            yield f"{name}: its log has no bound"


def health_is_asked(deployment: Deployment) -> Iterator[str]:
    """Yield services that go on without a healthcheck, and monitors without that of the image."""
    told = dockerfile.health_command(deployment.instructions)
    for name, service in deployment.services.items():
        test = service.get("healthcheck", {}).get("test")
        if not ends_by_itself(service) and not test:
            yield f"{name}: goes on, and has no healthcheck"
        elif is_monitor(service) and test != ["CMD-SHELL", told]:
            yield f"{name}: its healthcheck is not that of the image: {told}"
        elif ends_by_itself(service) and service.get("healthcheck") != {"disable": True}:
            yield f"{name}: ends, and has a healthcheck, if only that of its image"


def started_in_order(deployment: Deployment) -> Iterator[str]:
    """Yield services that depend on one that is missing, or on a condition that it cannot reach."""
    services = deployment.services
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            condition = how.get("condition")
            if other not in services:
                yield f"{name}: depends on {other}, which is no service"
            elif condition not in CONDITIONS:
                yield f"{name}: waits for {other} to be {condition}, which is none of {', '.join(CONDITIONS)}"
            elif condition == "service_healthy" and "test" not in services[other].get("healthcheck", {}):
                yield f"{name}: waits for {other} to be healthy, which has no healthcheck"
            elif (condition == "service_completed_successfully") is not ends_by_itself(services[other]):
                yield f"{name}: waits for {other}, which never comes to {condition}"


def variables_are_asked_for(deployment: Deployment) -> Iterator[str]:
    """Yield variables that the page on deployment does not name."""
    page = (ROOT / "docs" / "DEPLOY.md").read_text("utf-8")
    for variable in sorted(compose.variables(deployment.raw)):
        if f"`{variable}`" not in page:
            yield f"${{{variable}}} is put in, and docs/DEPLOY.md does not tell of it"


RULES: Final = (
    pinned,
    nobody_is_root,
    confined,
    health_is_asked,
    started_in_order,
    variables_are_asked_for,
)
