"""Environment variables of probes and taps: this is where they enter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

SINK_VARIABLE: Final = "HOPWATCH_SINK"


def read_variables() -> Mapping[str, str]:
    """Return all variables of the process."""
    return os.environ


def read_sink_url() -> str | None:
    """Return the URL of the sink that the environment names; None without one."""
    return os.environ.get(SINK_VARIABLE) or None
