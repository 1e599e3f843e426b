"""Tests of the delivery of messages to receivers."""
