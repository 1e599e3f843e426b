"""Tests of the delivery of notifications."""
