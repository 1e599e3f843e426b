"""Tests of the traffic rating."""
