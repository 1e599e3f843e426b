"""Sensor for Airflow: see :mod:`hopwatch.client.airflow_sensor`."""

from hopwatch.client.airflow_sensor import CompletenessSensor, CompletenessTrigger

__all__ = ["CompletenessSensor", "CompletenessTrigger"]
