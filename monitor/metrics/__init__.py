"""Metrics of the monitor for Prometheus: values, then samples, then a page; strictly one way."""
