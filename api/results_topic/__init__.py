"""Results as a stream: each state of a node in a window becomes a record of a compacted topic."""
