"""Stamps around kafka-python's clients: see :mod:`hopwatch.probes.integrations.kafka_python`."""

from hopwatch.probes.integrations.kafka_python import instrument

__all__ = ["instrument"]
