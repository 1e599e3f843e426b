"""Probe instances without a readable record: their folders in a spool, and records that were set aside.

A folder of a spool is named after its instance: a segment that cannot be read is a gap of that instance, and a folder
without a readable record is an instance that was not heard. On a topic the sender of an unreadable record is unknown:
it is a hole of the transport. SEMANTICS.md, "What is set aside", has the rule for each reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final, NamedTuple

from hopwatch.monitor.accounting.holes import Hole
from hopwatch.monitor.accounting.undeclared_names import IGNORED_NODE, UNKNOWN_NODE, UNKNOWN_STREAM
from hopwatch.monitor.kernel.books import RETIRED_AFTER_US, Book
from hopwatch.monitor.kernel.window import AHEAD_US
from hopwatch.monitor.payloads import SetAside
from hopwatch.monitor.segment_file import FOREIGN_FILE, UNREADABLE_FILE
from hopwatch.monitor.stream_config import StreamConfig
from hopwatch.probes.contract.segment import FORWARDED_RECORDS, MAX_FOLDER_CHARS, SEGMENT_SUFFIX

READABLE_REASONS: Final = frozenset({IGNORED_NODE, UNKNOWN_NODE, UNKNOWN_STREAM})
"""Reasons of records that were read: it is known whose they are."""
FOREIGN_REASONS: Final = READABLE_REASONS | {"bad_marker", "oversized"}
"""Reasons of records of a topic that no probe can have sent, or that were read: the topic's own checksum held."""

_FULL_NAME: Final = re.compile(r"(?P<probe>.+)\.(?P<epoch>\d{1,18})(?:-[0-9a-f]{12})?", re.DOTALL)
_TRUNCATED_NAME: Final = re.compile(rf"(?P<begin>.{{{MAX_FOLDER_CHARS}}})-[0-9a-f]{{12}}", re.DOTALL)
_MIN_EPOCH_DIGITS: Final = 10
"""Fewest digits of a real epoch since 1970; tests use smaller ones."""


class SpoolFolder(NamedTuple):
    """A folder of a spool, and the first and the last arrival that it is known by, µs."""

    name: str
    first_us: int
    last_us: int


@dataclass(slots=True)
class UnheardInstances:
    """Folders of instances without a readable record by name, and records of unknown senders."""

    folders: dict[str, SpoolFolder] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    """Folders with records that were read, of streams and nodes that do not count here; and their last arrival."""
    records: dict[tuple[str, int], Hole] = field(default_factory=dict)

    def note_folder(self, folder: SpoolFolder) -> None:
        """Note a folder of which no record was read; one that is no instance's is told apart when it is judged."""
        if folder.name in self.read:
            self.read[folder.name] = max(self.read[folder.name], folder.last_us)
            return
        known = self.folders.get(folder.name, folder)
        first_us, last_us = min(known.first_us, folder.first_us), max(known.last_us, folder.last_us)
        self.folders[folder.name] = SpoolFolder(folder.name, first_us, last_us)

    def note_record(self, place: SetAside, rules: Mapping[str, StreamConfig]) -> None:
        """Note a record that could not be read."""
        name = folder_of(place)
        if place.reason in (FOREIGN_REASONS if name is None else READABLE_REASONS):
            if name is not None and not _has_book(place, rules):
                # Who it is of is known now, whatever else the name may stand for.
                self.read[name] = max(self.read.get(name, place.arrival_us), place.arrival_us)
                self.folders.pop(name, None)
            return
        if name is not None and any(
            parse_instances(name, stream, version) for stream, of in rules.items() for version in of.versions
        ):
            self.note_folder(SpoolFolder(name, place.arrival_us, place.arrival_us))
        elif name is None or _may_be_any_instance(name, place.reason):
            where = place.path, place.position
            self.records[where] = Hole(*where, place.position, place.arrival_us, place.arrival_us)

    def books(self, stream: str, config: StreamConfig) -> Iterator[Book]:
        """Yield a book without a batch for each instance of a stream that a folder's name may stand for."""
        for folder in self.folders.values():
            for node, probe, epoch_us in parse_instances(folder.name, stream, config):
                epoch = folder.first_us if epoch_us is None else epoch_us
                yield Book(stream, node, probe, epoch, folder.first_us, folder.last_us)

    def forget(self, before_us: int) -> None:
        """Drop what arrived before a moment; a folder that is still there is noted again."""
        self.records = {where: hole for where, hole in self.records.items() if hole.before_us >= before_us}
        self.folders = {name: folder for name, folder in self.folders.items() if folder.last_us >= before_us}
        self.read = {name: last_us for name, last_us in self.read.items() if last_us >= before_us}


def folder_retention_us(rules: Mapping[str, StreamConfig]) -> int:
    """Return for how long after its last change a folder may have a say in a window that can be judged again, µs."""
    latest_us = RETIRED_AFTER_US + AHEAD_US
    kept_us = (version.terms.judged_until_us(0) for of_stream in rules.values() for version in of_stream.versions)
    return latest_us + max(kept_us, default=0)


def folder_of(place: SetAside) -> str | None:
    """Return the name of the folder that a record of a spool stood in; none of a record of a topic."""
    path = PurePath(place.path)
    return path.parent.name if path.suffix == SEGMENT_SUFFIX else None


def parse_instances(folder: str, stream: str, config: StreamConfig) -> list[tuple[str, str, int | None]]:
    """Return node, probe and epoch of each instance of a stream whose folder may have this name.

    The epoch is None where it is cut off. Names may have dots, so there may be several. A node that the path does not
    have stands for itself.
    """
    cut = _TRUNCATED_NAME.fullmatch(folder)
    rest = _strip_part(cut["begin"] if cut else folder, re.sub("^[._]", "-", stream), is_cut=bool(cut))
    return [] if rest is None else list(_parse_instances_of_stream(rest, config, is_cut=bool(cut)))


def _parse_instances_of_stream(
    rest: str, config: StreamConfig, *, is_cut: bool
) -> Iterator[tuple[str, str, int | None]]:
    """Yield (node, probe, epoch) for each that what stands behind the stream may say."""
    is_declared = False
    for node in config.pathway.declared:
        behind = _strip_part(rest, node, is_cut=is_cut)
        told = _FULL_NAME.fullmatch(behind or "")
        if behind is not None and (told or is_cut):
            is_declared = True
            # Of a name that was cut off the last digits may be missing.
            yield node, told["probe"] if told else "", int(told["epoch"]) if told and not is_cut else None
    node, told = rest.partition(".")[0], _FULL_NAME.fullmatch(rest.partition(".")[2])
    is_ignored = any(rest.startswith(f"{ignored}.") for ignored in config.ignore_nodes)
    if told and not is_declared and not is_cut and not is_ignored:
        yield node, told["probe"], int(told["epoch"])


def _strip_part(name: str, part: str, *, is_cut: bool) -> str | None:
    """Return what stands behind a part of a name and its dot; nothing of a name that was cut off inside the part."""
    if name.startswith(f"{part}."):
        return name[len(part) + 1 :]
    return "" if is_cut and f"{part}.".startswith(name) else None


def _has_book(place: SetAside, rules: Mapping[str, StreamConfig]) -> bool:
    """Return whether who sent a record that was read has a book.

    So it is where its node is unknown, or where its node is ignored, or its stream removed, by some versions alone.
    """
    if place.reason == UNKNOWN_NODE:
        return True
    if place.reason not in READABLE_REASONS:
        return False
    if place.sender is None:
        # What the store keeps of it does not say.
        return any(of_stream.earlier for of_stream in rules.values())
    of_stream = rules.get(place.sender.stream)
    if of_stream is None:
        return False
    return place.reason == UNKNOWN_STREAM or not of_stream.ignores_always(place.sender.node)


def is_instance_folder(folder: str) -> bool:
    """Return whether a folder's name is that of a probe instance, of any stream."""
    told = _FULL_NAME.fullmatch(folder)
    return bool(told and len(told["epoch"]) >= _MIN_EPOCH_DIGITS) or bool(_TRUNCATED_NAME.fullmatch(folder))


def _may_be_any_instance(folder: str, reason: str) -> bool:
    """Return whether a record in a folder of no declared instance may have been any instance's."""
    if folder.startswith(f"{FORWARDED_RECORDS}."):
        return True
    # No probe writes outside of a folder of its own: such a file may be anything.
    return reason not in {FOREIGN_FILE, UNREADABLE_FILE} and not is_instance_folder(folder)
