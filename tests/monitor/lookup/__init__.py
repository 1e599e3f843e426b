"""Tests of lookups in the store."""
