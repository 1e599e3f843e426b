"""Tests of the Makefile: what it offers, and what it says on a machine where something is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repository import ROOT

TARGETS = ["install", "demo", "test", "soak", "check", "bench", "pictures", "lock", "audit", "changelog", "clean"]
JAVA = (
    "Hopwatch needs Java 17 or newer, found {}: install it with 'apt-get install openjdk-17-jre-headless' (Debian, "
    "Ubuntu) or 'brew install openjdk@17' (macOS), and let JAVA_HOME, if it is set, point to it"
)
JAVAC = (
    "the probe for the JVM is built by javac, which is not here: install it with 'apt-get install "
    "openjdk-17-jdk-headless' (Debian, Ubuntu) or 'brew install openjdk@17' (macOS)"
)
PYTHON = (
    "Hopwatch needs Python 3.11 or newer, found Python 3.9.2: install it with 'apt-get install python3 python3-venv' "
    "(Debian 12 or newer) or 'brew install python@3.11' (macOS), or name one with 'make PYTHON=python3.12 install'"
)
VENV = (
    "Hopwatch needs Python's venv module, which Debian and Ubuntu keep in a package of its own: install it with "
    "'apt-get install python3-venv'"
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder with the Makefile, and a ``bin`` that has what a bare machine has: no Java, no Python."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("make", "sh", "sed"):
        found = shutil.which(name)
        assert found, f"{name} is needed: apt-get install make sed"
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def _program(machine: Path, name: str, script: str) -> None:
    program = machine / "bin" / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def _make(machine: Path, *arguments: str, **environ: str) -> tuple[int, list[str]]:
    """Run make on the bare machine; return its exit code and what it said, less make's own last word."""
    command = [str(machine / "bin" / "make"), "-C", str(machine), "--no-print-directory", *arguments]
    environ = {"PATH": str(machine / "bin")} | environ
    ended = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    said = (ended.stdout + ended.stderr).splitlines()
    return ended.returncode, [line for line in said if not line.startswith("make")]


@pytest.mark.parametrize("target", ["install", "demo", "test", "bench"])
def test_without_java_one_line_says_how_to_get_it(machine: Path, target: str) -> None:
    """Before anything is installed: the two commands, and an exit code that is not 0."""
    code, said = _make(machine, target)
    assert code != 0
    assert said == [JAVA.format("none")]
    assert not (machine / ".venv").exists()


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", "1"), ("11.0.2", "11"), ("16", "16")])
def test_an_old_java_is_told_by_its_version(machine: Path, version: str, major: str) -> None:
    """The error about an old Java has the version that was found."""
    _program(machine, "java", f"echo 'openjdk version \"{version}\" 2023-10-17' >&2")
    code, said = _make(machine, "java")
    assert code != 0
    assert said == [JAVA.format(major)]


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "25-ea"])
def test_a_new_java_is_taken_in_silence(machine: Path, version: str) -> None:
    """17 or newer, by PATH."""
    _program(machine, "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    assert _make(machine, "java") == (0, [])


def test_the_java_of_java_home_counts(machine: Path) -> None:
    """Spark takes that one, whatever is on the PATH."""
    _program(machine, "java", "echo 'openjdk version \"21\"' >&2")
    assert _make(machine, "java", JAVA_HOME=str(machine)) == (0, [])
    code, said = _make(machine, "java", JAVA_HOME=str(machine / "none"))
    assert (code != 0, said) == (True, [JAVA.format("none")])


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac', PYTHON),
        ('case "$2" in *ensurepip*) exit 1;; *) exit 0;; esac', VENV),
    ],
)
def test_a_python_that_will_not_do_is_told(machine: Path, script: str, told: str) -> None:
    """Too old, or without venv: one line with the command that helps, before anything is installed."""
    (machine / "requirements").mkdir()
    (machine / "requirements" / "dev.txt").touch()
    (machine / "pyproject.toml").touch()
    _program(machine, "java", "echo 'openjdk version \"17\"' >&2")
    _program(machine, "python3", script)
    code, said = _make(machine, "install")
    assert code != 0
    assert said == [told]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_there_and_told(target: str) -> None:
    """The head of the Makefile has a line for each target, and make knows how to make it."""
    text = (ROOT / "Makefile").read_text()
    assert f"# make {target} " in text
    ended = subprocess.run(["make", "-C", str(ROOT), "-n", target], capture_output=True, check=False)  # noqa: S607
    assert ended.returncode == 0


@pytest.mark.parametrize("code", [0, 1])
def test_an_audit_that_looked_at_nothing_fails_in_words(machine: Path, code: int) -> None:
    """All locks are looked at, strictly: a package that no database knows is no package without advisories."""
    auditing = machine / ".venv" / "audit" / "bin"
    auditing.mkdir(parents=True)
    (auditing / "pip-audit").write_text(f'#!/bin/sh\necho "$@"\nexit {code}\n')
    (auditing / "pip-audit").chmod(0o755)
    ended, (asked, *said) = _make(machine, "audit")
    locks = [f"--requirement=requirements/{name}.txt" for name in ("dev", "production", "build")]
    assert asked.split()[:3] == locks
    assert {"--strict", "--require-hashes"} <= set(asked.split())
    told = (
        "advisories were found, or the database of advisories was not reached: what it says stands above;"
        " ARGS=--vulnerability-service=osv asks another one"
    )
    assert (ended != 0, said) == (bool(code), [told] * code)


def test_a_changelog_is_asked_of_towncrier(machine: Path) -> None:
    """Of the pinned version, in a place of its own, with the flags that are given."""
    program = machine / ".venv" / "changelog" / "bin" / "towncrier"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    assert _make(machine, "changelog", "ARGS=--draft --version 0.2.0") == (0, ["build --yes --draft --version 0.2.0"])
    assert re.search(r"^TOWNCRIER := towncrier==[\d.]+$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_flags_reach_the_demo() -> None:
    """ARGS is handed on as it is."""
    command = ["make", "-C", str(ROOT), "-n", "demo", "ARGS=--drop router=0.02 --minutes 3"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ".venv/bin/hopwatch demo --drop router=0.02 --minutes 3\n" in told


def test_ci_runs_the_tests() -> None:
    """The one script of CI can be started, stops at the first failure, and calls make test."""
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert lines[-1] == "make test"


SERVERS = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "amtool": "prometheus-alertmanager",
    "chromium": "chromium",
    "redis-server": "redis-server",
    "rabbitmq-server": "rabbitmq-server",
    "nats-server": "nats-server",
    "go": "golang-go",
    "node": "nodejs",
    "tsc": "node-typescript",
}


@pytest.mark.parametrize("missing", [None, *SERVERS])
def test_each_server_of_the_tests_is_looked_for_by_itself(machine: Path, missing: str | None) -> None:
    """Each missing server is named with how to install it for users other than root; with all, nothing is printed."""
    assert list(Path("/usr/lib/postgresql").glob("*/bin/initdb")), "apt-get install postgresql"
    _program(machine, "id", "echo 1000")
    found = shutil.which("ls")
    assert found
    (machine / "bin" / "ls").symlink_to(found)
    for name in SERVERS.keys() - {missing}:
        _program(machine, name, "")
    jars = [
        word for jar in ("connector", "broker", "archived", "probe", "agent") for word in ("-o", f".venv/jars/{jar}")
    ]
    code, said = _make(machine, "servers", *jars)
    if missing is None:
        assert (code, said) == (0, [])
        return
    assert code != 0
    assert said == [f"the tests need servers of Debian's: install them with 'apt-get install {SERVERS[missing]}'"]


def test_without_a_compiler_of_java_one_line_says_how_to_get_it(machine: Path) -> None:
    """The probe for the JVM is built from its sources, and a JRE has no compiler."""
    _program(machine, "id", "echo 1000")
    code, said = _make(machine, ".venv/jars/probe", "-o", ".venv/jars/broker")
    assert code != 0
    assert said == [JAVAC]
