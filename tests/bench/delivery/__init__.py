"""Tests of the bench of deliveries."""
