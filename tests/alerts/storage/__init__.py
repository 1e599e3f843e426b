"""Tests of alerts in the store."""
