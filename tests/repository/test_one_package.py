"""Tests of the one import package: whatever else a service calls its own, and nothing under a second name."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.repository import ROOT

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
SERVICE: Final = """
import time
import alerts, cli, dashboards, demo, display, gate, monitor, probes
from hopwatch import Probe
assert all(hasattr(one, "OWN") for one in (alerts, cli, dashboards, demo, display, gate, monitor, probes))
probe = Probe(stream="orders", node="ingest", sink="spool:./spool")
probe.arrived("order-1", time.time_ns() // 1_000)
probe.close()
"""


@pytest.fixture
def service(tmp_path: Path) -> Path:
    """Return the folder of a service that has modules and packages of its own by all names of our folders."""
    (tmp_path / "probes.py").write_text("OWN = True\n", "utf-8")
    for name in FOLDERS[1:]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n", "utf-8")
    (tmp_path / "service.py").write_text(SERVICE, "utf-8")
    return tmp_path


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": "."}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_service_has_packages_of_its_own_by_the_names_of_our_folders(service: Path) -> None:
    """Its own are imported under their names, and a probe beside them works."""
    ended = _run(service, "service.py")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert any(service.glob("spool/*/*.seg"))


@pytest.mark.parametrize(
    "arguments", [("--version",), ("pathway", "check", "--config", "none.toml"), ("report", "--help")]
)
def test_commands_run_in_the_folder_of_such_a_service(service: Path, arguments: tuple[str, ...]) -> None:
    """No command imports what it finds in the folder where it is run."""
    ended = _run(service, "-m", "hopwatch", *arguments)
    assert "Traceback" not in ended.stderr
    assert ended.returncode == (2 if "none.toml" in arguments else 0), ended.stderr


def test_no_file_imports_a_folder_by_its_own_name() -> None:
    """A module would otherwise be there twice, with classes that are not the same."""
    files = [path for name in (*FOLDERS, "bench", "servers", "tests", "src") for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 1_000
    assert [str(path.relative_to(ROOT)) for path in files if _imported(path) & {*FOLDERS}] == []


def _imported(path: Path) -> set[str]:
    """Return the first parts of all names that a file imports absolutely."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
