"""Tests of the import of files."""
