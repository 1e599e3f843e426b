"""Probe of a PySpark job: see :mod:`hopwatch.probes.spark`."""

from hopwatch.probes.spark.spark_probe import SparkProbe

__all__ = ["SparkProbe"]
