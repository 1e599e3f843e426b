"""Propagator for OpenTelemetry: see :mod:`hopwatch.probes.integrations.opentelemetry`."""

from hopwatch.probes.integrations.opentelemetry import HopwatchPropagator

__all__ = ["HopwatchPropagator"]
