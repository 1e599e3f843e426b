"""Tests of the Dockerfile beyond what it shares with docker-compose.yml: the lock, the connector, the context."""

from __future__ import annotations

import re
import sys
import tomllib

from hopwatch.monitor.spark import connector
from tests.repository import ROOT
from tests.repository.deployment import dockerfile
from tests.repository.deployment.deployment import Deployment


def test_the_image_is_made_of_the_locks() -> None:
    """All packages are those of a lock file, by their hashes; the program's own wheel is put in without any more."""
    runs = [(one.stage, one.value) for one in Deployment().instructions if one.name == "RUN" and "/pip " in one.value]
    build, wheel, production, own = [value for _, value in runs]
    assert [stage for stage, _ in runs] == ["wheel", "wheel", "packages", "packages"]
    assert build.endswith("--require-hashes -r requirements/build.txt")
    assert wheel.endswith("--no-deps --no-build-isolation --wheel-dir /build/dist .")
    assert production.endswith("--require-hashes -r requirements/production.txt")
    assert own.endswith("--no-deps --no-index /build/dist/*.whl")
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "PRODUCTION := requirements/production.txt\n" in makefile
    assert "BUILD := requirements/build.txt\n" in makefile


def test_the_image_has_what_its_programs_import() -> None:
    """The extras that the production lock is made of are all but the one of development."""
    (line,) = re.findall(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(line.split()) == set(declared) - {"dev"}


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
