"""Packages that the demo needs only with the gate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from hopwatch.monitor.errors import DependencyError

REQUIRED_PACKAGES: Final = ("avro", "fastapi", "granian", "limits", "msgspec", "orjson")
SERVICE_PACKAGES: Final = (*REQUIRED_PACKAGES, "aiohttp")


class GateMissingError(DependencyError):
    """Packages of the gate are not installed."""


def check_packages(
    needed: Sequence[str] = REQUIRED_PACKAGES, flag: str = "--gate", extras: str = "monitor,taps,gate"
) -> None:
    """Check that the packages that a flag needs are installed.

    Raises:
        GateMissingError: some are not.
    """
    if missing := [package for package in needed if find_spec(package) is None]:
        names = ", ".join(missing)
        raise GateMissingError(f"{flag} needs {names}, not installed here: pip install 'hopwatch[{extras}]'")
