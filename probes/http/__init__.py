"""What the programs that are spoken to by HTTP share: how they say what is wrong, their bounds, and their server."""
