"""Measures of the monitor, beside peers on the same work, in one run. Not part of the distribution."""
