"""Splitter of a byte stream into lines, whatever its chunks are."""

from __future__ import annotations

from typing import Final

MAX_LINE_BYTES: Final = 1024 * 1024
"""Maximum length of a line; a longer one is skipped."""


class LineCutter:
    """Splitter of a byte stream; an incomplete line waits for its newline."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        """Start at the beginning of a line."""
        self.max_bytes = most_bytes
        self.oversized = 0
        self.waiting_bytes = 0
        """Bytes since the end of the last line, those of a skipped line included."""
        self._parts: list[bytes] = []
        self._is_skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that end in ``data``, without their newlines: none blank, none over ``most_bytes``."""
        last = data.rfind(b"\n")
        if last < 0:
            self._keep_part(data)
            return []
        first = data.index(b"\n")
        self._keep_part(data[:first])
        lines = self.end()
        if last > first:
            lines += self._drop_oversized(data[first + 1 : last].split(b"\n"))
        self._keep_part(data[last + 1 :])
        return lines

    def end(self) -> list[bytes]:
        """Return the incomplete line as complete: its source has ended."""
        line = b"".join(self._parts)
        self.oversized += self._is_skipping
        self._parts.clear()
        self._is_skipping, self.waiting_bytes = False, 0
        return self._drop_oversized([line])

    def _keep_part(self, data: bytes) -> None:
        self.waiting_bytes += len(data)
        if self.waiting_bytes > self.max_bytes:
            self._is_skipping = True
            self._parts.clear()
        elif data:
            self._parts.append(data)

    def _drop_oversized(self, lines: list[bytes]) -> list[bytes]:
        fitting = [line for line in lines if len(line) <= self.max_bytes]
        self.oversized += len(lines) - len(fitting)
        return [line for line in fitting if line and not line.isspace()]
