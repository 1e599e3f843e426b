"""Tests that mirror monitor/metrics."""
