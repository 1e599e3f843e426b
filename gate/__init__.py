"""The gate: the probe at the entrance of a stream, and the registry that it goes by."""
