"""Tests of the throttle of a gate."""
