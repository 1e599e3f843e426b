"""Tests of the probe of Spark jobs."""
