"""Gate of a stream: validates events at the entrance against the schemas of a registry, and stamps them."""
