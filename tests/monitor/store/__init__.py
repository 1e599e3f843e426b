"""Tests of the store, each on a SQLite file of its own."""
