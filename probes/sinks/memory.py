"""Sink in memory, for tests of probes."""

from __future__ import annotations


class MemorySink:
    """Sink that keeps every record; ``is_full`` makes it refuse; records put into ``failing`` fail after acceptance."""

    def __init__(self) -> None:
        """Start empty."""
        self.records: list[bytes] = []
        self.failing: list[bytes] = []
        self.is_full = False

    def send(self, record: bytes) -> bool:
        """Keep a record, unless full."""
        if not self.is_full:
            self.records.append(record)
        return not self.is_full

    def failed(self) -> list[bytes]:
        """Return, once, the records that a test has put into ``failing``."""
        failing, self.failing = self.failing, []
        return failing

    def tick(self) -> None:
        """Do nothing."""

    def settle(self, patience_s: float) -> bool:  # noqa: ARG002 - nothing takes time here
        """Return True: all records are kept."""
        return True

    def close(self, patience_s: float = 0.0) -> None:
        """Do nothing: no resource is open."""
