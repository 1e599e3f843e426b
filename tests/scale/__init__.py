"""Tests of the scaling of processes."""
