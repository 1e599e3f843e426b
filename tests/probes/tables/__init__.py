"""Tests of tables as ends of a stream."""
