"""Pulse of the monitor: a probe without stamps, whose heartbeats keep the arrival clock moving.

Its records take the same path as all others, and so prove that the transport works when no probe sends.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from hopwatch import Probe
from hopwatch.probes.contract.kafka import SCHEME as KAFKA
from hopwatch.probes.contract.kafka import KafkaAccess, KafkaPlace
from hopwatch.probes.contract.limits import MONITOR_STREAM
from hopwatch.probes.sinks import Sink, SinkOpener, open_sink
from hopwatch.probes.sinks.kafka import KafkaSink

NODE: Final = "monitor"


def start_pulse(url: str, access: KafkaAccess, every_s: float) -> Probe:
    """Return the pulse, beating until it is closed."""
    sink = SinkOpener(partial(open_monitor_sink, url, access))
    return Probe(MONITOR_STREAM, NODE, sink, heartbeat_every_s=every_s, flush_every_s=every_s, close_on_sigterm=False)


def open_monitor_sink(url: str, access: KafkaAccess, instance: str) -> Sink:
    """Open the transport for a probe of the monitor's own.

    Into Kafka it is let as the monitor is, by its settings: a probe by itself would ask the environment.
    """
    is_kafka = url.startswith(KAFKA)
    return KafkaSink(KafkaPlace.parse(url), instance, access=access) if is_kafka else open_sink(url, instance)
