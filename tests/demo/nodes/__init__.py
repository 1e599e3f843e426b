"""Tests of the demo's nodes."""
