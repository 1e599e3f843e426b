"""Tests of the peers."""
