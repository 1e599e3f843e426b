"""Tests of the monitor's texts."""
