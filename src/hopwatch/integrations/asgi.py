"""ASGI middleware: see :mod:`hopwatch.probes.integrations.asgi`."""

from hopwatch.probes.integrations.asgi import HopwatchMiddleware

__all__ = ["HopwatchMiddleware"]
