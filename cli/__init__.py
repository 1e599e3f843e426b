"""The command line: one file a command; each reads or starts something and holds no logic of its own."""
