"""Tests of the taps."""
