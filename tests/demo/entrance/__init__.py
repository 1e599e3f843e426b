"""Tests of the demo's entrance where it is the gate."""
