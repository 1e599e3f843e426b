"""Tests of what probes and monitor agree on."""
