"""Outliers of the series that windows leave behind: pure, causal, the same for a stream, a batch and a file."""
