"""Sensor for Dagster: see :mod:`hopwatch.client.dagster_sensor`."""

from hopwatch.client.dagster_sensor import build_completeness_sensor

__all__ = ["build_completeness_sensor"]
