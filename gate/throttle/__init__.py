"""Throttle of a gate: admits fewer events of a stream while they wait too long for the consumers behind it."""
