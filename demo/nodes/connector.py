"""connector: writes the flights to a file, one JSON object a line, and begins a new file when one is full."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hopwatch.demo.layout import Layout
from hopwatch.demo.nodes.process import open_step, read_settings, relay_messages
from hopwatch.demo.records import Flight, FlightMessage

MAX_FILE_BYTES: Final = 64 * 1024 * 1024


class FlightFile:
    """The end of the pipeline: ``flights.jsonl``, and ``flights.1.jsonl``, the full one before it."""

    def __init__(self, folder: Path, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Open the file in ``folder`` behind what it holds already; it is cut at ``max_file_bytes``."""
        self._path = folder / "flights.jsonl"
        self._full_path = folder / "flights.1.jsonl"
        self._max_file_bytes = max_file_bytes
        self._file = self._path.open("ab", buffering=0)

    def hand_on(self, message: FlightMessage, then: Callable[[], None]) -> None:
        """Append one flight; what is written stays written, whatever happens to this process."""
        line = json.dumps({"id": message.id.hex(), **message.flight}, separators=(",", ":")).encode() + b"\n"
        if self._file.tell() + len(line) > self._max_file_bytes:
            self._file.close()
            self._path.replace(self._full_path)
            self._file = self._path.open("ab", buffering=0)
        self._file.write(line)
        then()

    def settle(self) -> None:
        """Do nothing: what is written has left."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def label_flight(flight: Flight) -> Flight:
    """Return the flight with the name people call it by, such as ``UA 1545 EWR-IAH``."""
    return {"name": "{carrier} {flight} {origin}-{dest}".format_map(flight), **flight}


if __name__ == "__main__":
    settings = read_settings()
    with open_step(settings, label_flight, FlightFile(Layout(settings.path).output)) as step:
        relay_messages(settings, step)
