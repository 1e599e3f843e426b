"""Packages that the demo needs only with the gate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from hopwatch.monitor.errors import DependencyError

REQUIRED_PACKAGES: Final = ("avro", "fastapi", "granian", "limits", "msgspec", "orjson")


class GateMissingError(DependencyError):
    """Packages of the gate are not installed."""


def check_packages(needed: Sequence[str] = REQUIRED_PACKAGES) -> None:
    """Check that the gate's packages are installed.

    Raises:
        GateMissingError: some are not.
    """
    if missing := [package for package in needed if find_spec(package) is None]:
        names = ", ".join(missing)
        raise GateMissingError(f"--gate needs {names}, not installed here: pip install 'hopwatch[monitor,taps,gate]'")
