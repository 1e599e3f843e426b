"""Tests of pyproject.toml: what the package holds, what a probe needs, and a reason for every exception."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

import monitor
from tests.repository import ROOT

TEXT: Final = (ROOT / "pyproject.toml").read_text()
PROJECT: Final = tomllib.loads(TEXT)

EMBEDDED: Final = """
import importlib.abc, sys
class OnlyBase(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {others!r}:
            raise ModuleNotFoundError(f"not among the base dependencies: {{name}}", name=name)
sys.meta_path.insert(0, OnlyBase())
from probes import Probe
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the names of the files in a wheel that was built now."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("hopwatch-0.1.0-*.whl")
    return zipfile.ZipFile(built).namelist()


def test_the_wheel_holds_probes_monitor_alerts_dashboards_and_demo(wheel: list[str]) -> None:
    """Benches and tests stay out, and nothing else gets in."""
    assert {name.partition("/")[0] for name in wheel} == {
        *("probes", "monitor", "alerts", "dashboards", "demo"),
        "hopwatch-0.1.0.dist-info",
    }


@pytest.mark.parametrize(
    "name",
    [
        "probes/contract/observation_batch.v1.avsc",
        "probes/contract/observation_batch.v2.avsc",
        "probes/py.typed",
        "monitor/py.typed",
        "alerts/py.typed",
        "dashboards/py.typed",
        "dashboards/app.py",
        "alerts/alertmanager/alertmanager.yml",
        "alerts/prometheus/hopwatch.rules.yml",
        "monitor/store/migrations/script.py.mako",
        "monitor/store/migrations/versions/v0001_first_tables.py",
        "hopwatch-0.1.0.dist-info/licenses/LICENSE",
    ],
)
def test_the_wheel_holds_what_is_no_python(name: str, wheel: list[str]) -> None:
    """The schema, the marks that say that the packages are typed, what migrations are read from, and the licence."""
    assert name in wheel


def test_the_version_is_the_monitor_s() -> None:
    """One place says the version; the distribution reads it there."""
    assert monitor.__version__ == "0.1.0"
    assert PROJECT["tool"]["hatch"]["version"]["path"] == str(Path(monitor.__file__).relative_to(ROOT))


def test_a_probe_needs_the_base_dependencies_only() -> None:
    """An embedding service imports a probe without any package of an extra."""
    extras = [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
    others = {Requirement(one).name.lower().replace("-", "_") for one in extras}
    script = EMBEDDED.format(others=others)
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_rule_that_is_off_has_its_reason_beside_it() -> None:
    """Whoever meets an exception from all rules reads why in the same line."""
    lint = PROJECT["tool"]["ruff"]["lint"]
    assert lint["select"] == ["ALL"]
    rules = [*lint["ignore"], *(rule for off in lint["per-file-ignores"].values() for rule in off)]
    for rule in rules:
        assert re.search(rf'"{rule}"[\],]+ +# \w+.{{20,}}$', TEXT, re.MULTILINE), f"{rule} is off without a reason"


def test_the_types_are_strict() -> None:
    """All packages, all rules; only other people's libraries are let off some."""
    mypy = PROJECT["tool"]["mypy"]
    assert mypy["strict"]
    assert mypy["packages"] == ["probes", "monitor", "alerts", "dashboards", "demo", "bench", "tests"]
    let_off = {module.partition(".")[0] for override in mypy["overrides"] for module in override["module"]}
    assert let_off.isdisjoint(mypy["packages"])
