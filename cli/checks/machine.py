"""Checks of the machine: Python, Java, and the packages of Spark."""

from __future__ import annotations

import importlib
import platform
import sys
from typing import Final

from hopwatch.cli.checks.finding import Finding, Level
from hopwatch.monitor import java as spark_java
from hopwatch.monitor.errors import JavaError

MIN_PYTHON: Final = (3, 11)
SPARK_PACKAGES: Final = ("pyspark", "pandas", "pyarrow", "google.protobuf")
"""Packages that the job and its workers import; protobuf is needed only when the first state is created."""


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Check the version of Python."""
    told = f"Python {'.'.join(map(str, version))}, {platform.python_implementation()}, at {sys.executable}"
    if version < MIN_PYTHON:
        return Finding("python", Level.FAIL, told, "install Python 3.11 or newer, and Hopwatch with it")
    return Finding("python", Level.OK, told)


def check_java() -> Finding:
    """Check the Java that Spark will use."""
    try:
        version = spark_java.require_java()
    except JavaError as error:
        what, _, advice = str(error).rpartition(": ")
        return Finding("java", Level.FAIL, what, advice)
    return Finding("java", Level.OK, f"Java {version} at {spark_java.find_executable()}")


def check_spark() -> Finding:
    """Check that the packages which the job needs can be imported."""
    versions = []
    for name in SPARK_PACKAGES:
        try:
            package = importlib.import_module(name)
        except ImportError as error:
            advice = "pip install 'hopwatch[monitor]', into the environment of this hopwatch"
            return Finding("spark", Level.FAIL, f"the Python package {name} cannot be imported: {error}", advice)
        versions.append(f"{name} {package.__version__}")
    return Finding("spark", Level.OK, ", ".join(versions))
