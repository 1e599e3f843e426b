"""Tests of the Java that Spark needs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hopwatch.monitor import java
from hopwatch.monitor.errors import JavaError

INSTALL = "apt-get install openjdk-17-jre-headless (Debian, Ubuntu) or brew install openjdk@17 (macOS)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of the PATH; JAVA_HOME is not set."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def put_java(folder: Path, script: str) -> Path:
    """Put a program called java into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "java"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def saying(version: str) -> str:
    """Return a script that tells its version as Java does."""
    return f"""echo 'openjdk version "{version}" 2023-10-17' >&2; echo 'OpenJDK Runtime Environment' >&2"""


@pytest.mark.parametrize(("version", "major"), [("17", 17), ("17.0.9", 17), ("21-ea", 21), ("25.0.1+8", 25)])
def test_java_17_and_newer_are_good(version: str, major: int, folder: Path) -> None:
    """The major version is returned."""
    put_java(folder, saying(version))
    assert java.require_java() == major


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11), ("16", 16)])
def test_an_older_java_is_refused(version: str, major: int, folder: Path) -> None:
    """The message says which was found, where, and the command that installs a newer one."""
    file = put_java(folder, saying(version))
    with pytest.raises(JavaError) as caught:
        java.require_java()
    assert str(caught.value) == f"Spark needs Java 17 or newer, got Java {major} at {file}: {INSTALL}"


@pytest.mark.parametrize("script", ["echo 'command not found' >&2; exit 127", "exit 0", "echo 17"])
def test_a_java_that_tells_no_version_is_refused(script: str, folder: Path) -> None:
    """Such as the stub that macOS puts on the PATH."""
    file = put_java(folder, script)
    with pytest.raises(JavaError) as caught:
        java.require_java()
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer, got one that does not tell its version at {file}: {INSTALL}"
    )


def test_no_java_is_told_with_the_command_that_installs_it(folder: Path) -> None:
    """One line."""
    with pytest.raises(JavaError) as caught:
        java.require_java()
    assert str(caught.value) == f"Spark needs Java 17 or newer, none was found on the PATH: {INSTALL}"
    assert list(folder.iterdir()) == []


def test_java_home_comes_before_the_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does for Spark."""
    put_java(folder, saying("11"))
    put_java(folder / "jdk" / "bin", saying("21"))
    monkeypatch.setenv("JAVA_HOME", str(folder / "jdk"))
    assert java.require_java() == 21


def test_a_java_home_without_java_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark looks nowhere else then, even if the PATH has one."""
    put_java(folder, saying("21"))
    monkeypatch.setenv("JAVA_HOME", str(folder / "gone"))
    with pytest.raises(JavaError) as caught:
        java.require_java()
    assert str(caught.value) == (
        f"Spark needs Java 17 or newer, none was found in JAVA_HOME, which is {folder}/gone: {INSTALL}"
    )


def test_a_java_that_does_not_answer_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that does not answer in time, or is no program, has no version."""
    monkeypatch.setattr(java, "_TIMEOUT_S", 0.05)
    before_s = time.monotonic()
    assert java.read_version(str(put_java(folder, "exec /bin/cat /dev/zero > /dev/null"))) is None
    assert time.monotonic() - before_s < 5
    assert java.read_version(str(folder)) is None
