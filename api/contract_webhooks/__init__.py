"""Webhooks of contracts: consumers are told when a span of a stream is complete, and when that changes."""
