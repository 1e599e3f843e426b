"""Tests of the service of the demo."""
