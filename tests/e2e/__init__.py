"""The program as a user runs it: real processes, real Spark."""
