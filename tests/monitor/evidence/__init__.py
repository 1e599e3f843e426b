"""Tests of evidence files."""
