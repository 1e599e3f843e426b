"""Stamps around aiokafka's clients: see :mod:`hopwatch.probes.integrations.aiokafka`."""

from hopwatch.probes.integrations.aiokafka import instrument

__all__ = ["instrument"]
