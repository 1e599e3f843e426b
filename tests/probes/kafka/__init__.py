"""Tests of what Kafka's clients share."""
