"""``hopwatch`` with its results in PostgreSQL: the program as a user runs it, against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy.engine import make_url

from hopwatch.monitor.store import dialect
from hopwatch.monitor.store.tables import SCHEMA_VERSION
from servers.postgres import PASSWORD, Postgres
from tests.support.command_call import called
from tests.support.worked_example import NODES, stamp

RUN: Final = (sys.executable, "-m", "hopwatch")
PATIENCE_S: Final = 600


def configure(folder: Path, url: str, name: str = "hopwatch.toml") -> Path:
    """Write a configuration for the worked example and return its path."""
    stream = f'[streams.example]\npath = "{" -> ".join(NODES)}"\nmax_age = "3650d"\namend_for = "3650d"\n'
    config = folder / name
    config.write_text(f'[transport]\nurl = "spool:./spool"\n[store]\nurl = "{url}"\n{stream}')
    return config


def run_once(config: Path) -> subprocess.CompletedProcess[str]:
    """Run the monitor once, in a working folder of its own."""
    command = [*RUN, "run", "--once", "--config", str(config), "--workdir", str(config.with_suffix(""))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert PASSWORD not in ended.stdout + ended.stderr
    return ended


def hopwatch(config: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Call a command with a configuration."""
    ended = called(*command, "--config", str(config))
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
        ended = run_once(config)
        assert ended.returncode == 0, ended.stderr
    told = [report(config) for config in configs]
    assert told[0]["streams"][0]["windows"][0]["lost"] == 5
    assert told[1] == told[0]
    drawn = [hopwatch(config, "report").stdout for config in configs]
    assert drawn[1] == drawn[0]
    found = [hopwatch(config, "find", "9", "--json").stdout for config in configs]
    assert '"lost": [\n' in found[0]
    assert found[1] == found[0]


def test_a_second_monitor_is_refused(postgres: Postgres, tmp_path: Path) -> None:
    """On whichever machine it is: exit 3 before anything is read."""
    stamp(tmp_path / "spool")
    url = postgres.database()
    config = configure(tmp_path, url)
    with dialect.lock_store(url):
        ended = run_once(config)
    name = dialect.redact_url(url)
    told = (
        f"hopwatch: another monitor writes to the store {name}: stop it first, or name another store in [store] url\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "", told)


WRONG: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "password": ({"password": "wrong-word"}, "correct user and password in [store] url, in PGPASSWORD or in ~/.pgpass"),
    "server": ({"port": 1}, "check that the server is up, and host and port in [store] url, then start again"),
    "database": ({"database": "nowhere"}, "make it with createdb, or correct its name in [store] url"),
}


@pytest.mark.parametrize("command", [("run",), ("run", "--once"), ("report",), ("store", "migrate")], ids=" ".join)
@pytest.mark.parametrize(("part", "advice"), WRONG.values(), ids=WRONG)
def test_a_store_that_cannot_be_reached_is_told(
    part: dict[str, Any], advice: str, command: tuple[str, ...], postgres: Postgres, tmp_path: Path
) -> None:
    """Exit 3 and one line: where, what, what to do; the password in it is never told."""
    (tmp_path / "spool").mkdir()
    url = make_url(postgres.database()).set(**part).render_as_string(hide_password=False)
    config = configure(tmp_path, url)
    ended = hopwatch(config, *command)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (3, "", 1)
    assert ended.stderr.startswith(f"hopwatch: the store {dialect.redact_url(url)} failed: connection failed: ")
    assert ended.stderr.endswith(f"; {advice}\n")
    assert PASSWORD not in ended.stderr
    assert "wrong-word" not in ended.stderr


def test_a_store_is_taken_to_the_newest_version(postgres: Postgres, tmp_path: Path) -> None:
    """An empty database becomes a store, and one at the newest version stays as it is."""
    (tmp_path / "spool").mkdir()
    config = configure(tmp_path, postgres.database())
    commands = [("store", "migrate"), ("store", "migrate"), ("report",)]
    told = []
    for command in commands:
        ended = hopwatch(config, *command)
        assert ended.returncode == 0, ended.stderr
        told.append(ended.stderr)
    assert [f"is at schema version {SCHEMA_VERSION}, newly made" in told[0], "already" in told[1]] == [True, True]
