"""Tests of the OTLP tap."""
