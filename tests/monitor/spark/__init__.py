"""Tests of the job: mostly of its parts, without Spark."""
