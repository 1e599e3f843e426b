"""What a probe raises, and only when it was made with ``strict=True``."""

from __future__ import annotations


class ProbeError(ValueError):
    """A probe was used in a way that production counts as a drop."""
