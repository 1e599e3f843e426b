"""Tests of the tap by HTTP."""
