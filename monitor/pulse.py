"""The monitor's own pulse: a probe that stamps nothing, so that its heartbeats keep the arrival clock moving.

It goes the way of every other record, and so proves that the transport works when all is quiet.
"""

from __future__ import annotations

from typing import Final

from probes import Probe
from probes.contract.limits import MONITOR_STREAM

NODE: Final = "monitor"


def start(sink: str, every_s: float) -> Probe:
    """Return the pulse, beating until it is closed."""
    return Probe(stream=MONITOR_STREAM, node=NODE, sink=sink, heartbeat_every_s=every_s, flush_every_s=every_s)
