"""Rules: files, folders and ports are those that there are, and what is kept outlives its container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from tests.repository import ROOT
from tests.repository.deployment import alerting, compose, dockerfile
from tests.repository.deployment.deployment import Deployment, image_of, is_monitor
from tests.repository.deployment.variables import advertised, valid_settings


def files_are_there(deployment: Deployment) -> Iterator[str]:
    """Yield files that are mounted or copied, and are missing, writable, or kept from the build."""
    for name, service in deployment.services.items():
        for source, target, mode in compose.mounts(service):
            if source.startswith("."):
                if not (ROOT / source).is_file():
                    yield f"{name}: {source} is mounted, and is not in the repository"
                if mode != "ro":
                    yield f"{name}: {target} can be written, and is a file of the repository"
            elif source not in deployment.raw.get("volumes", {}):
                yield f"{name}: the volume {source} is not declared"
    for source in dockerfile.copied(deployment.instructions):
        if not (ROOT / source).exists():
            yield f"Dockerfile: {source} is copied, and is not in the repository"
        if f"!{source}" not in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
            yield f"Dockerfile: {source} is copied, and .dockerignore keeps it back"


def data_outlives_a_container(deployment: Deployment) -> Iterator[str]:
    """Folders of data are volumes, of one service each; every volume is used."""
    used: dict[str, str] = {}
    for name, service in deployment.services.items():
        kept = {PurePosixPath(target): source for source, target, _ in compose.mounts(service) if source[0] != "."}
        for source in kept.values():
            if used.setdefault(source, name) != name:
                yield f"{name}: the volume {source} is that of {used[source]}"
        for what, folder in _data(deployment, name):
            if not any(folder.is_relative_to(place) for place in kept):
                yield f"{name}: {what} {folder} is in no volume"
    yield from (f"the volume {name} is not used" for name in deployment.raw.get("volumes", {}) if name not in used)


def ports_are_used(deployment: Deployment) -> Iterator[str]:
    """Yield published ports on which nothing listens, or that are open to the network."""
    listening = alerting.listening(deployment)
    for name, service in deployment.services.items():
        for port in service.get("ports", []):
            *host, published, target = str(port).split(":")
            if host != ["127.0.0.1"]:
                yield f"{name}: the port {published} is open to all of the network"
            is_used = f"localhost:{target}" in advertised(deployment, name) or f"{name}:{target}" in listening
            if published != target or not is_used:
                yield f"{name}: the port {published} is published, and nothing is advertised there"


def temporary_folders_are_there(deployment: Deployment) -> Iterator[str]:
    """Yield services without a /tmp, and monitors in whose /tmp Spark cannot run what it unpacks."""
    for name, service in deployment.services.items():
        folders = dict(str(one).partition(":")[::2] for one in service.get("tmpfs", []))
        if service.get("read_only") is True and "/tmp" not in folders:  # noqa: S108 - the container's own
            yield f"{name}: has no /tmp"
        if is_monitor(service) and "exec" not in folders.get("/tmp", "").split(","):  # noqa: S108
            yield f"{name}: nothing can be run in its /tmp, where Spark unpacks libraries"


def _data(deployment: Deployment, name: str) -> Iterator[tuple[str, PurePosixPath]]:
    environ = compose.environment(deployment.services[name])
    if "KAFKA_LISTENERS" in environ:
        yield "KAFKA_LOG_DIRS", PurePosixPath(environ.get("KAFKA_LOG_DIRS", "by default"))
    if image_of(deployment.services[name]) == "postgres":
        yield "the database", PurePosixPath("/var/lib/postgresql/data")
    chosen = valid_settings(deployment, name) if is_monitor(deployment.services[name]) else None
    if chosen:
        yield "the work folder", PurePosixPath(chosen.monitor.workdir)


RULES: Final = (
    files_are_there,
    data_outlives_a_container,
    ports_are_used,
    temporary_folders_are_there,
)
