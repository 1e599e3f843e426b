"""Integrations: stamping wrappers for clients that services already use, one file per client."""
