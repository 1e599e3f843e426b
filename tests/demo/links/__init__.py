"""Tests of the links between the demo's nodes."""
