"""Migrations of the store's tables, version by version; run by :mod:`monitor.store.schema` alone."""
