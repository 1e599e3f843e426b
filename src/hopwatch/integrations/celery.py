"""Tasks of Celery: see :mod:`hopwatch.probes.integrations.celery`."""

from hopwatch.probes.integrations.celery import instrument

__all__ = ["instrument"]
