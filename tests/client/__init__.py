"""Tests of the client of the gate."""
