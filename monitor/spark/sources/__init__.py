"""Where records come from: each source yields the paths of segments, or records, to the one decoder."""
