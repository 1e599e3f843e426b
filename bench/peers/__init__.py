"""Peers of the monitor on the same observations, one row each from Parquet: a bitmask or joins, and percentiles.

Every peer returns its result as :class:`bench.truth.Found`, is held against the same truth as the monitor, and
gets what is kind to it: numbers instead of names, no checksums, no books, no duplicate batches, no store to write to.
"""
