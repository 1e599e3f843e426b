"""Tests of the checks of the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hopwatch.cli.checks import Level, machine


def test_this_python_will_do() -> None:
    """The Python that runs the tests is new enough, and its version and place are told."""
    finding = machine.check_python()
    assert finding.level is Level.OK
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in finding.message
    assert sys.executable in finding.message


def test_an_old_python_fails() -> None:
    """3.10 is told by its number, with what to install."""
    finding = machine.check_python((3, 10, 12))
    assert (finding.level, finding.advice) == (Level.FAIL, "install Python 3.11 or newer, and Hopwatch with it")
    assert finding.message.startswith("Python 3.10.12, ")


def _java(folder: Path, says: str) -> None:
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)


def test_a_java_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version and place are told; JAVA_HOME is asked first, as Spark does."""
    _java(tmp_path, 'openjdk version "21.0.1" 2023-10-17')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = machine.check_java()
    assert (finding.level, finding.message) == (Level.OK, f"Java 21 at {tmp_path}/bin/java")


@pytest.mark.parametrize(
    ("says", "got"),
    [
        ('java version "1.8.0_392"', "got Java 8 at"),
        ('openjdk version "11.0.2"', "got Java 11 at"),
        ("?", "got one that does not tell its version at"),
    ],
)
def test_a_java_that_is_too_old_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, got: str) -> None:
    """The message has the version that was found, and the advice has the command that installs a newer one."""
    _java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = machine.check_java()
    assert finding.level is Level.FAIL
    assert got in finding.message
    assert "apt-get install openjdk-17-jre-headless" in finding.advice
    assert "brew install openjdk@17" in finding.advice


def test_no_java_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any the advice is the same."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = machine.check_java()
    assert (finding.level, finding.message) == (Level.FAIL, "Spark needs Java 17 or newer, none was found on the PATH")
    assert "apt-get install openjdk-17-jre-headless" in finding.advice


def test_the_packages_of_spark_are_told_with_their_versions() -> None:
    """All that the job imports is here."""
    finding = machine.check_spark()
    assert finding.level is Level.OK
    assert finding.message.startswith("pyspark 4.2.1, pandas 2.")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Protobuf is missed by Spark only when it makes its first state: doctor misses it now."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    finding = machine.check_spark()
    assert (finding.level, finding.advice) == (
        Level.FAIL,
        "pip install 'hopwatch[monitor]', into the environment of this hopwatch",
    )
    assert finding.message.startswith("the Python package google.protobuf cannot be imported: ")
