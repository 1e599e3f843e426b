"""Tests: they mirror the source; laws are in laws/."""
