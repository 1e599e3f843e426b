"""``hopwatch`` with its results in PostgreSQL: the program as a user runs it, against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.e2e.worked_example import NODES, stamp
from tests.real.servers.postgres import PASSWORD, Postgres

RUN: Final = (sys.executable, "-m", "monitor.cli.main")
PATIENCE_S: Final = 180


def configure(folder: Path, url: str, name: str = "hopwatch.toml") -> Path:
    """Write a configuration for the worked example and return its path."""
    stream = f'[streams.example]\npath = "{" -> ".join(NODES)}"\nmax_age = "3650d"\namend_for = "3650d"\n'
    config = folder / name
    config.write_text(f'[transport]\nurl = "spool:./spool"\n[store]\nurl = "{url}"\n{stream}')
    return config


def hopwatch(config: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a configuration."""
    called = [*RUN, command, "--config", str(config), *arguments]
    ended = subprocess.run(called, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert PASSWORD not in ended.stdout + ended.stderr
    return ended


def report(config: Path) -> dict[str, Any]:
    """Return what ``report --json`` says."""
    told = hopwatch(config, "report", "--json")
    assert told.returncode == 0, told.stderr
    return dict(json.loads(told.stdout))


def test_a_report_from_postgresql_is_the_report_from_sqlite(postgres: Postgres, tmp_path: Path) -> None:
    """The worked example, read once into each: field by field the same, JSON and table."""
    stamp(tmp_path / "spool")
    configs = [
        configure(tmp_path, "sqlite:///./hopwatch.db"),
        configure(tmp_path, postgres.database(), "postgres.toml"),
    ]
    for config in configs:
        ended = hopwatch(config, "run", "--once", "--workdir", str(tmp_path / config.stem))
        assert ended.returncode == 0, ended.stderr
    told = [report(config) for config in configs]
    assert told[0]["streams"][0]["windows"][0]["lost"] == 5
    assert told[1] == told[0]
    drawn = [hopwatch(config, "report").stdout for config in configs]
    assert drawn[1] == drawn[0]
    found = [hopwatch(config, "find", "9", "--json").stdout for config in configs]
    assert '"lost": [\n' in found[0]
    assert found[1] == found[0]
