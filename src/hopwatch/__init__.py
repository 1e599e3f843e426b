"""Hopwatch: loss and lag of a message pipeline. A service that is to be watched needs :class:`Probe` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hopwatch.probes import Probe

__version__ = "0.1.0"
__all__ = ["Probe", "__version__"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562
    """Return the probe, imported when it is asked for: commands and workers of the monitor need none."""
    if name != "Probe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hopwatch.probes import Probe  # noqa: PLC0415

    return Probe
