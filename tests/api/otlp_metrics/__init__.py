"""Tests of results as metrics of OpenTelemetry."""
