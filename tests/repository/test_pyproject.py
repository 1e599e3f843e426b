"""Tests of pyproject.toml: what the package holds, what a probe needs, and a reason for every exception."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from functools import partial
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

import hopwatch
from tests.repository import ROOT
from tests.repository.project import EMBEDDED, PROJECT, TEXT

FOLDERS: Final = (
    "probes",
    "gate",
    "deliver",
    "scale",
    "client",
    "rate",
    "monitor",
    "alerts",
    "display",
    "api",
    "dashboards",
    "cli",
    "demo",
)


STAMPED: Final = """
import time
from hopwatch import Probe
with Probe(stream="orders", node="ingest", sink="spool:./spool") as probe:
    probe.arrived("order-1", time.time_ns() // 1_000)
"""
"""A service that is observed."""
BASE: Final = {"fastavro", "google-crc32c", "numpy"}
"""What a service that is observed has to have; one more is a decision."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel that was built now."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("hopwatch-0.1.0-*.whl")
    return found


@pytest.fixture(scope="module")
def wheel(built: Path) -> list[str]:
    """Return the names of the files in that wheel."""
    return zipfile.ZipFile(built).namelist()


def packed(name: str, folder: Path) -> str:
    """Pack a distribution that is installed here as the wheel that it came from; return its name as pip writes it."""
    found = distribution(name)
    tag = next(line.partition(": ")[2] for line in (found.read_text("WHEEL") or "").splitlines() if "Tag: " in line)
    stem = f"{found.name.replace('-', '_')}-{found.version}"
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w") as archive:
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                archive.write(str(file.locate()), str(file))
    return found.name.lower()


def test_an_archive_of_sources_makes_the_same_wheel(wheel: list[str], tmp_path: Path) -> None:
    """The archive of sources holds no links, and a wheel built from it equals one built from the repository."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("hopwatch-0.1.0.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path, filter="data")
    subprocess.run([*build, "wheel"], cwd=tmp_path / "hopwatch-0.1.0", check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    assert sorted(zipfile.ZipFile(built).namelist()) == sorted(wheel)


def test_the_wheel_holds_one_package(wheel: list[str]) -> None:
    """A service may have a package of any other name: benches and tests stay out, and nothing else gets in."""
    assert {name.partition("/")[0] for name in wheel} == {"hopwatch", "hopwatch-0.1.0.dist-info"}
    own = {name.split("/")[1] for name in wheel if name.startswith("hopwatch/")}
    assert own == {"__init__.py", "__main__.py", "py.typed", "testing.py", "integrations", *FOLDERS}


@pytest.mark.parametrize(
    "name",
    [
        "hopwatch/probes/contract/observation_batch.v1.avsc",
        "hopwatch/probes/contract/observation_batch.v2.avsc",
        "hopwatch/py.typed",
        "hopwatch/dashboards/app.py",
        "hopwatch/display/texts.py",
        "hopwatch/alerts/alertmanager/alertmanager.yml",
        "hopwatch/alerts/prometheus/hopwatch.rules.yml",
        "hopwatch/monitor/store/migrations/script.py.mako",
        "hopwatch/monitor/store/migrations/versions/v0001_first_tables.py",
        "hopwatch-0.1.0.dist-info/licenses/LICENSE",
    ],
)
def test_the_wheel_holds_what_is_no_python(name: str, wheel: list[str]) -> None:
    """The schema, the marks that say that the packages are typed, what migrations are read from, and the licence."""
    assert name in wheel


def test_the_version_is_said_once() -> None:
    """One place says the version; the distribution reads it there."""
    assert hopwatch.__version__ == "0.1.0"
    assert PROJECT["tool"]["hatch"]["version"]["path"] == str(Path(hopwatch.__file__).relative_to(ROOT))


def test_a_probe_needs_the_base_dependencies_only() -> None:
    """An embedding service imports a probe without any package of an extra."""
    extras = [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
    others = {Requirement(one).name.lower().replace("-", "_") for one in extras}
    script = EMBEDDED.format(others=others)
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_wheel_installs_with_the_base_dependencies_alone(built: Path, tmp_path: Path) -> None:
    """Without extras, into an environment with nothing in it and without a network; then a service is observed."""
    asked_for = [Requirement(one).name for one in PROJECT["project"]["dependencies"]]
    assert {packed(name, tmp_path) for name in asked_for} == BASE
    venv.create(tmp_path / "env")
    python = str(tmp_path / "env" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "--python", python]
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=False)
    ended = run([*pip, "install", "--quiet", "--no-index", "--no-compile", "--find-links", str(tmp_path), str(built)])
    assert (ended.returncode, ended.stderr) == (0, "")
    listed = run([*pip, "list", "--format=json"])
    assert {one["name"].lower() for one in json.loads(listed.stdout)} == {"hopwatch", *BASE}
    ended = run([python, "-I", "-c", STAMPED])
    assert (ended.returncode, ended.stderr) == (0, "")
    assert any(tmp_path.glob("spool/*/*.seg"))


def test_every_rule_that_is_off_has_its_reason_beside_it() -> None:
    """Every rule that is off has its reason in the same line."""
    lint = PROJECT["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    rules = [*lint["ignore"], *(rule for off in lint["per-file-ignores"].values() for rule in off)]
    for rule in rules:
        assert re.search(rf'"{rule}"[\],]+ +# \w+.{{20,}}$', TEXT, re.MULTILINE), f"{rule} is off without a reason"


def test_the_types_are_strict() -> None:
    """All packages, all rules; only other people's libraries are let off some."""
    mypy = PROJECT["tool"]["mypy"]
    assert mypy["strict"]
    assert mypy["packages"] == ["hopwatch", "servers", "bench", "tests"]
    let_off = {module.partition(".")[0] for override in mypy["overrides"] for module in override["module"]}
    assert let_off.isdisjoint(mypy["packages"])
