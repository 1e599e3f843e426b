"""Test support for services that embed a probe: see :mod:`hopwatch.probes.testing`."""

from hopwatch.probes.testing import EPOCH_US, ManualClock, MemorySink, Observation, id_bytes, observations

__all__ = ["EPOCH_US", "ManualClock", "MemorySink", "Observation", "id_bytes", "observations"]
