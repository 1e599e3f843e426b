"""Tests of the store, in either database: a SQLite file of its own, or one on a server that the tests start."""
