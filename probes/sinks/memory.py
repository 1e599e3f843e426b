"""A sink that keeps records in memory: for tests of probes, ours and those of teams."""

from __future__ import annotations


class MemorySink:
    """Keeps every record; ``is_full`` makes it refuse; what is put into ``failing`` has failed after it was taken."""

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
        """Return, once, what the host of a test has put into ``failing``."""
        failing, self.failing = self.failing, []
        return failing

    def tick(self) -> None:
        """Nothing is due."""

    def settle(self, patience_s: float) -> bool:  # noqa: ARG002 - nothing takes time here
        """Say that all is kept."""
        return True

    def close(self, patience_s: float = 0.0) -> None:
        """Nothing is open."""
