"""Tests of the evaluation of alert rules."""
