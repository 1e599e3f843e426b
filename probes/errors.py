"""Error of a probe, raised only with ``strict=True``."""

from __future__ import annotations


class ProbeError(ValueError):
    """Wrong use of a probe; without ``strict`` it is counted as a drop."""
