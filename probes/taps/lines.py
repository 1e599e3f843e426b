"""Bytes in, whole lines out, however the bytes are cut."""

from __future__ import annotations

from typing import Final

MAX_LINE_BYTES: Final = 1024 * 1024
"""A line that is longer is skipped to its end."""


class LineCutter:
    """Cuts lines off a stream of bytes; what has no newline yet waits."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        """Start at the beginning of a line."""
        self.max_bytes = most_bytes
        self.oversized = 0
        self.waiting_bytes = 0
        """How many bytes were fed since the last line ended, those of a line that is skipped too."""
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
        """Return what waits as a line: nothing more will come of it."""
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
