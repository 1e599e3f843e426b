"""Java runtime of Spark: find it, check its version, and say how to install it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from hopwatch.monitor.errors import JavaError

MIN_VERSION: Final = 17
INSTALL_ADVICE: Final = "apt-get install openjdk-17-jre-headless (Debian, Ubuntu) or brew install openjdk@17 (macOS)"
_TIMEOUT_S: Final = 30


def find_executable() -> str | None:
    """Return the java that Spark would run: of JAVA_HOME, else of the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")


def read_version(java: str) -> int | None:
    """Return the major version of a java, none if it does not say."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603 - the user's own java
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


def require_java() -> int:
    """Return the major version of the Java that is there.

    Raises:
        JavaError: there is none, or it is too old.
    """
    java = find_executable()
    if java is None:
        where = f"in JAVA_HOME, which is {home}" if (home := os.environ.get("JAVA_HOME")) else "on the PATH"
        raise JavaError(f"Spark needs Java {MIN_VERSION} or newer, none was found {where}: {INSTALL_ADVICE}")
    found = read_version(java)
    if found is None or found < MIN_VERSION:
        got = "one that does not tell its version" if found is None else f"Java {found}"
        raise JavaError(f"Spark needs Java {MIN_VERSION} or newer, got {got} at {java}: {INSTALL_ADVICE}")
    return found
