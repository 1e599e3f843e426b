"""Stamps around confluent-kafka's clients: see :mod:`hopwatch.probes.integrations.confluent_kafka`."""

from hopwatch.probes.integrations.confluent_kafka import instrument

__all__ = ["instrument"]
