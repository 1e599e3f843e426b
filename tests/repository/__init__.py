"""Tests that hold the build files true."""
