"""Tests of the import contracts: they hold, and each of them would notice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.repository import ROOT

PACKAGES: Final = ("src/hopwatch", "bench", "servers")
FORBIDDEN: Final = [
    ("hopwatch.monitor", "hopwatch.alerts"),
    ("hopwatch.monitor.accounting.ledger", "hopwatch.monitor.store"),
    ("hopwatch.demo.faults", "hopwatch.demo.nodes"),
    ("hopwatch.probes", "pyspark"),
    ("hopwatch.client", "orjson"),
    ("hopwatch.probes.sinks", "hopwatch.probes.taps"),
    ("hopwatch.monitor", "hopwatch.probes"),
    ("hopwatch.gate.registry.breaks", "time"),
    ("hopwatch.monitor.kernel", "time"),
    ("hopwatch.monitor.kernel", "datetime"),
    ("hopwatch.monitor.metrics.samples", "time"),
    ("hopwatch.monitor.store", "pyspark"),
    ("hopwatch.monitor.store.outliers", "hopwatch.monitor.outlier_detection"),
    ("hopwatch.demo", "hopwatch.probes.contract"),
    ("hopwatch.alerts.decision.evaluation", "sqlalchemy"),
    ("hopwatch.scale.policy", "time"),
    ("hopwatch.alerts.delivery.retry_policy", "time"),
    ("hopwatch.dashboards.pages", "sqlalchemy"),
    ("hopwatch.display", "time"),
    ("hopwatch.dashboards.report", "streamlit"),
]
"""For each contract, in their order, an import that it forbids."""


def _lint(folder: Path) -> tuple[int, str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    path = {"PYTHONPATH": str(folder / "src")}
    ended = subprocess.run(command, cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_contracts_hold() -> None:
    """Data flows one way, and the kernel is pure."""
    code, told = _lint(ROOT)
    assert code == 0, told


def test_every_contract_notices_what_it_forbids(tmp_path: Path) -> None:
    """With one forbidden import added for each contract, none of them is kept."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        # Links are followed: what is written into the copy stays there.
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for source, forbidden in FORBIDDEN:
        room = tmp_path.joinpath("src", *source.split("."))
        with (room / "__init__.py" if room.is_dir() else room.with_suffix(".py")).open("a") as file:
            file.write(f"import {forbidden}\n")
    code, told = _lint(tmp_path)
    assert code != 0
    assert re.search(f"Contracts: 0 kept, {len(FORBIDDEN)} broken", told), told
