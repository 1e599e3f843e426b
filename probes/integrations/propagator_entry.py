"""Entry point of the propagator for OpenTelemetry, which is loaded when a traced service starts."""

from __future__ import annotations

import logging

from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.propagators.textmap import TextMapPropagator


def load_propagator() -> TextMapPropagator:
    """Return the propagator; one that does nothing where it cannot be loaded, such as without an SDK."""
    try:
        from hopwatch.probes.integrations.opentelemetry import HopwatchPropagator  # noqa: PLC0415 - it may be missing

        return HopwatchPropagator()
    except Exception as error:  # noqa: BLE001 - a service starts without its probes, too
        logging.getLogger("hopwatch.probe").warning("no message is stamped: opentelemetry-sdk is needed: %s", error)
        return CompositePropagator([])
