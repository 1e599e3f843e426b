"""Fuzz targets for foreign input, by atheris: each runs in a process of its own, which a crash may end."""
