"""Tests of the redrive of lost messages."""
