"""Tests of the transports of probes."""
