"""Tests of the ways to people."""
