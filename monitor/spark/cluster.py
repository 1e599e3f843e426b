"""Spark masters: this process by default, or a cluster that gets an archive of our package."""

from __future__ import annotations

import re
import socket
import zipfile
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Final

from hopwatch.monitor.errors import ConfigurationError, DependencyError

LOCAL: Final = "local"
CONNECT_TIMEOUT_S: Final = 5.0
PACKAGE: Final = "hopwatch"
ARCHIVED_PACKAGES: Final = ("probes", "monitor")
"""Subpackages that the workers import."""
ARCHIVE: Final = "hopwatch.zip"

_MASTERS: Final = re.compile(
    r"local(\[([1-9]\d*|\*)\])?|spark://(?P<hosts>[^,/\s]+:\d+(,[^,/\s]+:\d+)*)|yarn|k8s://\S+"
)


def is_local(master: str) -> bool:
    """Return whether a master is this process."""
    return master.partition("[")[0] == LOCAL


def check_master(master: str) -> None:
    """Check that a master can be, and that one of Spark's own answers.

    Raises:
        ConfigurationError: it is none of Spark's masters.
        DependencyError: none of the hosts answers.
    """
    found = _MASTERS.fullmatch(master)
    if found is None:
        form = "local, local[CORES], spark://HOST:PORT, yarn or k8s://URL"
        raise ConfigurationError(f"a Spark master is {form}; got {master!r:.80} in --master or [monitor] master")
    hosts = found["hosts"]
    if hosts and not any(map(_is_answering, hosts.split(","))):
        advice = "start it, or correct --master or [monitor] master; then try again"
        raise DependencyError(f"no Spark master answers at {master}: {advice}")


def _is_answering(place: str) -> bool:
    host, _, port = place.rpartition(":")
    with suppress(OSError, ValueError), socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S):
        return True
    return False


def write_archive(folder: Path) -> Path:
    """Write our packages into an archive that workers can import from, and return it."""
    path = folder / ARCHIVE
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed,
        resources.as_file(resources.files(PACKAGE)) as root,
    ):
        # In a checkout the parts are links, which a search of the whole would not follow.
        files = [
            root / "__init__.py",
            *(file for part in ARCHIVED_PACKAGES for file in sorted((root / part).rglob("*"))),
        ]
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                packed.write(file, Path(PACKAGE) / file.relative_to(root))
    return path


def cluster_settings() -> dict[str, str]:
    """Return what the workers of a cluster need beside what every job needs."""
    return {
        # Spark lays the archive into the folder that it starts the workers' Python in.
        "spark.executorEnv.PYTHONPATH": ARCHIVE,
    }
