"""Stamps and drops that a probe has sent so far."""

from __future__ import annotations

from hopwatch.probes import Probe
from hopwatch.testing import MemorySink, Observation, observations
from tests.support.drops import drops


def said(probe: Probe, sink: MemorySink) -> list[Observation]:
    """Return what the probe said so far."""
    probe.flush()
    return observations(sink)


def causes(probe: Probe, sink: MemorySink) -> list[tuple[str, int]]:
    """Return what the probe said that it could not stamp."""
    probe.flush()
    return [(drop.cause, drop.count) for drop in drops(sink.records)]
