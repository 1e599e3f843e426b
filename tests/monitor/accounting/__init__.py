"""Tests of the monitor's accounts."""
