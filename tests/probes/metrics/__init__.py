"""Tests of what the programs that are spoken to by HTTP share."""
