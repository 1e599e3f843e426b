"""Tests of the Dockerfile beyond what it shares with docker-compose.yml: the lock, the connector, the context."""

from __future__ import annotations

import sys

from monitor.spark import connector
from tests.repository import ROOT
from tests.repository.deployment import dockerfile
from tests.repository.deployment.deployment import Deployment


def test_the_image_is_made_of_the_lock() -> None:
    """All packages are those of the lock file, by their hashes; the program's own is put in without any more."""
    runs = [one.value for one in Deployment().instructions if one.name == "RUN" and "pip install" in one.value]
    lock, own = runs
    assert lock.endswith("--require-hashes -r requirements/dev.txt")
    assert own.endswith("--no-deps --no-build-isolation .")
    assert "LOCK := requirements/dev.txt\n" in (ROOT / "Makefile").read_text("utf-8")


def test_the_image_has_the_connector_where_the_program_looks() -> None:
    """Below the prefix of the Python that runs it, which is also the one on the PATH; made as `make servers` does."""
    deployment = Deployment()
    folder = dockerfile.environment(deployment.instructions)["PATH"].partition("/bin:")[0]
    copies = dict(value.split()[1:] for value in dockerfile.of_last_stage(deployment.instructions, "COPY"))
    relative = connector.JARS.relative_to(sys.prefix)
    assert copies == {folder: folder, "/build/connector": f"{folder}/{relative}"}
    (maven,) = [one.value for one in deployment.instructions if one.value.startswith("mvn ")]
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    assert plugin in maven
    assert plugin in (ROOT / "Makefile").read_text("utf-8")
