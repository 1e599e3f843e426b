"""Registrations as a stream: each version of each subject becomes a record, whoever registered it.

The store is looked at once a second, so that what commands and other gates register is written, too. What is written is
remembered in memory: a gate that starts writes all versions again, under the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import Final, NamedTuple, Protocol

import orjson

from hopwatch.gate.registry.schema_store import SchemaStore, SchemaStoreError, SubjectVersion
from hopwatch.gate.registry.subjects import parse_stored
from hopwatch.probes.once_per_cause import OncePerCause

LOOK_S: Final = 1.0


class ChangeRecord(NamedTuple):
    """Record of one version: its key names subject and version, its value is JSON."""

    key: bytes
    value: bytes


class ChangeWriter(Protocol):
    """Place that records go to."""

    def write(self, records: Sequence[ChangeRecord]) -> str:
        """Write records in order, and return why one of them was not taken; empty once all are acknowledged."""


class RegistryChanges:
    """Writes what is registered, in the order of the versions of each subject, at least once."""

    def __init__(self, store: SchemaStore, writer: ChangeWriter, report: Callable[[str], object]) -> None:
        """Begin with nothing written; ``report`` takes a line for the operator."""
        self._store, self._writer, self._report = store, writer, report
        self._written: dict[str, int] = {}
        """Of each subject the latest version that is written."""
        self._reported = OncePerCause()

    def run(self, stop: Event) -> None:
        """Write what is registered until the event is set."""
        while not stop.is_set():
            self.step()
            stop.wait(LOOK_S)

    def step(self) -> None:
        """Write what was registered since the last look."""
        try:
            found = self._find_new()
        except SchemaStoreError as error:
            self._report_once(str(error))
            return
        is_whole = True
        for subject, entries in found.items():
            why = self._writer.write([build_change_record(subject, entry) for entry in entries])
            if why:
                self._report_once(f"registrations of {subject} are not written: {why}: trying on")
                is_whole = False
            else:
                self._written[subject] = entries[-1].version
        if is_whole and self._reported.rearm():
            self._report("all registrations are written again")

    def _find_new(self) -> dict[str, Sequence[SubjectVersion]]:
        with self._store.reading() as shelf:
            return {
                subject: [entry for entry in shelf.entries(subject) if entry.version > self._written.get(subject, 0)]
                for subject, latest in shelf.latest_versions().items()
                if latest > self._written.get(subject, 0)
            }

    def _report_once(self, told: str) -> None:
        if self._reported.is_new(told):
            self._report(told)


def build_change_record(subject: str, entry: SubjectVersion) -> ChangeRecord:
    """Return the record of a version."""
    fingerprint = parse_stored(entry.schema.text).fingerprint.hex()
    value = {
        "subject": subject,
        "version": entry.version,
        "id": entry.schema.number,
        "fingerprint": fingerprint,
        "schema": orjson.loads(entry.schema.text),
    }
    return ChangeRecord(f"{subject}/{entry.version}".encode(), orjson.dumps(value))
