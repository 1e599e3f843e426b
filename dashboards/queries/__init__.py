"""Queries of the dashboard: the only package here that reads the store."""
