"""Tests of the outlier detector."""
