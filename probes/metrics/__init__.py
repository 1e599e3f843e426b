"""Metrics of components that events pass through: values, then samples, then a page; strictly one way."""
