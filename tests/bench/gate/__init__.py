"""Tests of the bench of the gate."""
