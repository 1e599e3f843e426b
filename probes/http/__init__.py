"""Shared parts of the HTTP programs: problem responses, request limits, and the server."""
